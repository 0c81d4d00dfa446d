import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeManifest } from '../src/cli/manifest.ts';
import { operations } from '../src/operations/index.ts';
import { readVersion } from '../src/version.ts';

/** Compiles src to dist, copies what the compiler leaves behind, and writes down the commands. */
const DONE = 'dist/cli/manifest.json';

if (process.argv.includes('--if-stale') && isFresh()) process.exit(0);
rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
for (const file of globSync('src/**/*.{lua,sql}')) {
  const to = file.replace(/^src/, 'dist');
  mkdirSync(dirname(to), { recursive: true });
  cpSync(file, to);
}
chmodSync('bin/reeve', 0o755);
writeFileSync(DONE, JSON.stringify(makeManifest(operations, readVersion())));

/** Nothing in src is newer than what was built from it. */
function isFresh(): boolean {
  const builtAt = statSync(DONE, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return globSync(['src/**/*', 'package.json', 'tsconfig*.json']).every((file) => statSync(file).mtimeMs <= builtAt);
}
