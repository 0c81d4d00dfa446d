import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeManifest } from '../src/cli/manifest.ts';
import { operations } from '../src/operations/index.ts';
import { readVersion } from '../src/version.ts';

process.chdir(join(import.meta.dirname, '..'));
const DONE = 'cli/manifest.json';
if (process.argv.includes('--if-stale') && isFresh()) process.exit(0);
build();

/**
 * Compiles src, copies what the compiler leaves behind and writes down the commands: all of it aside, and put into
 * place at the end. What runs meanwhile, or a build that fails, finds the old dist whole.
 */
function build(): void {
  const began = new Date();
  const aside = `.build-${process.pid}`;
  try {
    const tsc = join('node_modules', '.bin', 'tsc');
    const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', aside], { stdio: 'inherit' });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
    for (const file of globSync('src/**/*.{lua,sql}')) {
      const to = file.replace(/^src/, aside);
      mkdirSync(dirname(to), { recursive: true });
      cpSync(file, to);
    }
    writeFileSync(join(aside, DONE), JSON.stringify(makeManifest(operations, readVersion())));
    // A file saved while the compiler ran may not be in there: it counts as newer.
    utimesSync(join(aside, DONE), began, began);
    chmodSync('bin/reeve', 0o755);
    putInPlace(aside);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Two renames, with nothing between them. Another build may do the same at this moment: the last one stays. */
function putInPlace(aside: string): void {
  for (let attempt = 1; ; attempt++) {
    const old = `${aside}-old-${attempt}`;
    try {
      if (existsSync('dist')) renameSync('dist', old);
      renameSync(aside, 'dist');
      return;
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '') || attempt > 5) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

/** Nothing in src is newer than what was built from it. A folder is newer when a file in it is gone. */
function isFresh(): boolean {
  const builtAt = statSync(join('dist', DONE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = globSync(['src', 'src/**/*', 'package.json', 'tsconfig*.json', 'scripts/build.ts']);
  return sources.every((file) => statSync(file).mtimeMs <= builtAt);
}
