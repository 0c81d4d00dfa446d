import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { REEVE, ROOT, reeve } from '../support/cli.ts';
import { startDaemon } from '../support/daemon.ts';
import { aPathWith } from '../support/path.ts';

const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-launch-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A Node that says how old it is, finds itself too old, and can do nothing else. */
async function anOldNode(bin: string): Promise<void> {
  const script = '#!/bin/sh\n[ "$1" = -p ] && echo 20.20.2 && exit\nexit 1\n';
  await writeFile(join(bin, 'node'), script, { mode: 0o755 });
}

describe('bin/reeve', () => {
  test('says what to do where nothing is built', async () => {
    await mkdir(join(folder, 'bin'));
    await cp(REEVE, join(folder, 'bin/reeve'));
    const ran = await reeve(['status'], { program: join(folder, 'bin/reeve'), cwd: folder });

    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain('npm ci && npm run build');
  });

  test('works through links, wherever they lie', async () => {
    await mkdir(join(folder, 'a'));
    await symlink(REEVE, join(folder, 'a/first'));
    await symlink('a/first', join(folder, 'second'));
    const ran = await reeve(['--version'], { program: join(folder, 'second'), cwd: folder });

    expect(ran).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('runs on the Node it brings along, whatever Node the system has', async () => {
    const bin = await aPathWith(join(folder, 'bin'));
    await anOldNode(bin);
    const ran = await reeve(['--version'], { cwd: folder, env: { PATH: bin } });

    expect(ran).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('refuses a Node of the system that is too old, if it brought none along', async () => {
    const bin = await aPathWith(join(folder, 'path'));
    await anOldNode(bin);
    await mkdir(join(folder, 'reeve/bin'), { recursive: true });
    await mkdir(join(folder, 'reeve/dist/cli'), { recursive: true });
    await cp(REEVE, join(folder, 'reeve/bin/reeve'));
    await writeFile(join(folder, 'reeve/dist/cli/entry.js'), '');
    const ran = await reeve([], { program: join(folder, 'reeve/bin/reeve'), cwd: folder, env: { PATH: bin } });

    expect(ran).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/needs Node 24\.11 or newer, found: 20\.20\.2/),
    });
  });

  test('may lie in a folder with spaces in its name', async () => {
    const odd = join(folder, 'my  own $HOME');
    await mkdir(odd);
    await symlink(REEVE, join(odd, 'reeve'));
    expect((await reeve(['--version'], { program: join(odd, 'reeve'), cwd: odd })).code).toBe(0);
  });
});

describe('a short command loads no more than it needs', () => {
  /** The files a command loaded, by a hook in its own process. */
  async function loadedBy(words: readonly string[], cwd: string): Promise<string[]> {
    const [hook, list] = [join(folder, 'hook.mjs'), join(folder, 'loaded')];
    await writeFile(
      hook,
      `import { registerHooks } from 'node:module';
       import { appendFileSync } from 'node:fs';
       registerHooks({ load: (url, context, next) => {
         appendFileSync(${JSON.stringify(list)}, url + '\\n');
         return next(url, context);
       } });`,
    );
    const ran = await reeve(words, { cwd, env: { NODE_OPTIONS: `--import ${hook}` } });
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    return (await readFile(list, 'utf8')).trimEnd().split('\n');
  }
  const packagesOf = (files: readonly string[]) => [
    ...new Set(files.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]).filter(Boolean)),
  ];

  test('reeve status: commander, and nothing of the daemon', async () => {
    await using daemon = await startDaemon();
    const files = await loadedBy(['status'], daemon.cwd);

    expect(packagesOf(files)).toEqual(['commander']);
    expect(files.filter((file) => /dist\/(operations|redis|store|http|system)\//.test(file))).toEqual([]);
  });

  test('reeve --version: no package at all', async () => {
    expect(packagesOf(await loadedBy(['--version'], folder))).toEqual([]);
  });
});
