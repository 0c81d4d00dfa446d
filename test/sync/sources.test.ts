import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { blobSha } from '../../src/registry/asset.ts';
import { directorySource } from '../../src/sync/directory-source.ts';
import { gitSource } from '../../src/sync/git-source.ts';
import type { Entry, Source } from '../../src/sync/source.ts';
import { verified } from '../../src/sync/verified.ts';
import { type Files, makeGitRepo } from '../support/git-repo.ts';
import { startGithub } from '../support/github.ts';
import { sourceOf } from '../support/sync.ts';

const cleanUps: (() => PromiseLike<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A place that a source reads, and how somebody else changes it. */
interface World {
  readonly source: Source;
  readonly change: (files: Files) => Promise<void>;
}

const surroundings = { PATH: process.env.PATH ?? '', HOME: tmpdir() };

const WORLDS: Record<Source['kind'], () => Promise<World>> = {
  async github() {
    const github = await startGithub();
    cleanUps.push(() => github[Symbol.asyncDispose]());
    return { source: sourceOf(github), change: async (files) => void github.repo.commit(files) };
  },
  async git() {
    const repo = await makeGitRepo();
    cleanUps.push(() => repo[Symbol.asyncDispose]());
    return { source: gitSource({ dir: repo.dir, surroundings }), change: async (files) => void repo.commit(files) };
  },
  async directory() {
    const dir = await mkdtemp(join(tmpdir(), 'reeve-dir-'));
    cleanUps.push(() => rm(dir, { recursive: true, force: true }));
    return { source: directorySource({ dir, clock: systemClock }), change: (files) => put(dir, files) };
  },
};

async function put(dir: string, files: Files): Promise<void> {
  for (const [path, value] of Object.entries(files)) {
    const full = join(dir, path);
    await rm(full, { force: true });
    if (value === undefined) continue;
    await mkdir(dirname(full), { recursive: true });
    if (typeof value !== 'object' || !('mode' in value)) await writeFile(full, value);
    else if (value.mode === '120000') await symlink(value.content, full);
    else {
      await writeFile(full, value.content);
      await chmod(full, 0o755);
    }
  }
}

/** Everything that a folder and a repository can both hold. */
const FILES: Files = {
  'prompts/a.yaml': 'id: a\n',
  'prompts/deep/er/b.yaml': 'id: b\n',
  'prompts/we ird #1?.yaml': 'id: odd\n',
  'prompts/数据.yaml': 'id: cjk\n',
  'prompts/same.yaml': 'id: a\n',
  'prompts/folder.yaml/inside.txt': 'a folder may have any name',
  'tools/run.sh': { mode: '100755', content: '#!/bin/sh\n' },
  'tools/link.yaml': { mode: '120000', content: '../../../etc/passwd' },
  'tools/bytes.bin': Buffer.from([0, 255, 10, 13, 0]),
  'tools/large.yaml': `#${'x'.repeat(200_000)}\n`,
  'empty.txt': '',
};
const contentOf = (value: Files[string]): Buffer =>
  Buffer.from(typeof value === 'object' && 'mode' in value ? value.content : (value as string));
const LISTED = Object.entries(FILES)
  .map(([path, value]): Entry => {
    const bytes = contentOf(value);
    const mode = typeof value === 'object' && 'mode' in value ? value.mode : '100644';
    return { path, mode, sha: blobSha(bytes), size: bytes.byteLength };
  })
  .sort((a, b) => (a.path < b.path ? -1 : 1));

const signal = AbortSignal.timeout(60_000);
async function commitOf(source: Source, known?: string): Promise<string> {
  const head = await source.head({ known, signal });
  if (head.outcome !== 'at') throw new Error('nothing new');
  return head.commit;
}
const listed = async (source: Source, commit: string) =>
  [...(await source.list(commit, signal)).entries].sort((a, b) => (a.path < b.path ? -1 : 1));

describe.each(Object.entries(WORLDS))('a %s source', (kind, make) => {
  test('lists every file with its mode, SHA and size as git has them, at one commit', async () => {
    const { source, change } = await make();
    await change(FILES);
    const commit = await commitOf(source);
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
    expect(await listed(source, commit)).toEqual(LISTED);
    expect(source.kind).toBe(kind);
    expect(source.address).not.toContain('ghs_secret');
  });

  test('says "unchanged" for the commit that is known, and the new one after a change', async () => {
    const { source, change } = await make();
    await change(FILES);
    const before = await commitOf(source);
    expect(await source.head({ known: before, signal })).toEqual({ outcome: 'unchanged' });
    await change({ 'prompts/a.yaml': 'id: a2\n' });
    const after = await commitOf(source, before);
    expect(after).not.toBe(before);
    expect((await listed(source, after)).find(({ path }) => path === 'prompts/a.yaml')?.sha).toBe(
      blobSha(Buffer.from('id: a2\n')),
    );
  });

  test('a file that goes is not listed any more', async () => {
    const { source, change } = await make();
    await change(FILES);
    await change({ 'tools/large.yaml': undefined });
    expect((await listed(source, await commitOf(source))).map(({ path }) => path)).not.toContain('tools/large.yaml');
  });

  test('gives the exact bytes of what is wanted, each SHA once, and nothing else', async () => {
    const { source, change } = await make();
    await change(FILES);
    const commit = await commitOf(source);
    const wanted = (await listed(source, commit)).filter(({ mode }) => mode !== '120000' && mode !== '160000');
    const got = new Map<string, Buffer>();
    for await (const { sha, bytes } of verified(source, commit, wanted, { signal })) {
      expect(got.has(sha)).toBe(false);
      got.set(sha, Buffer.from(bytes));
    }
    expect([...got.keys()].sort()).toEqual([...new Set(wanted.map(({ sha }) => sha))].sort());
    for (const [sha, bytes] of got) expect(blobSha(bytes)).toBe(sha);
    const none = [];
    for await (const blob of source.read(commit, [], { signal })) none.push(blob);
    expect(none).toEqual([]);
  });

  test('a blob that is not there is left out or fails, and is never made up', async () => {
    const { source, change } = await make();
    await change(FILES);
    const commit = await commitOf(source);
    const ghost: Entry = { path: 'prompts/ghost.yaml', mode: '100644', sha: 'a'.repeat(40), size: 3 };
    const got: string[] = [];
    const reading = (async () => {
      for await (const { sha } of verified(source, commit, [ghost], { signal })) got.push(sha);
    })();
    await reading.catch((error: unknown) => expect(error).toMatchObject({ code: expect.stringMatching(/^SOURCE_/) }));
    expect(got).toEqual([]);
  });

  test('writes, replaces and deletes as one step on top of what was expected', async () => {
    const { source, change } = await make();
    await change(FILES);
    const expected = await commitOf(source);
    const files = new Map<string, Uint8Array | undefined>([
      ['prompts/a.yaml', Buffer.from('id: a3\n')],
      ['prompts/new/n.yaml', Buffer.from('id: n\n')],
      ['tools/large.yaml', undefined],
    ]);
    const { commit } = await source.write({ files, expected, message: 'Three at once' }, signal);
    expect(await commitOf(source, expected)).toBe(commit);
    const now = new Map((await listed(source, commit)).map(({ path, sha }) => [path, sha]));
    expect(now.get('prompts/a.yaml')).toBe(blobSha(Buffer.from('id: a3\n')));
    expect(now.get('prompts/new/n.yaml')).toBe(blobSha(Buffer.from('id: n\n')));
    expect(now.has('tools/large.yaml')).toBe(false);
    expect(now.size).toBe(LISTED.length);
  });

  test('refuses to write on top of anything else, and says both', async () => {
    const { source, change } = await make();
    await change(FILES);
    const expected = await commitOf(source);
    await change({ 'prompts/a.yaml': 'id: somebody\n' });
    const actual = await commitOf(source, expected);
    const files = new Map([['prompts/a.yaml', Buffer.from('id: mine\n')]]);
    await expect(source.write({ files, expected, message: 'Late' }, signal)).rejects.toMatchObject({
      code: 'SOURCE_MOVED',
      details: { expected, actual },
    });
    expect(await commitOf(source)).toBe(actual);
  });

  test('stops when it is told to', async () => {
    const { source, change } = await make();
    await change(FILES);
    const commit = await commitOf(source);
    const over = AbortSignal.abort(new Error('enough'));
    await expect(source.head({ signal: over })).rejects.toThrow(/enough|abort/i);
    const reading = (async () => {
      for await (const _blob of source.read(commit, LISTED, { signal: over })) throw new Error('it went on');
    })();
    await expect(reading).rejects.not.toThrow('it went on');
  });
});

test('a folder and a repository with the same content are the same to everyone else', async () => {
  const trees: string[] = [];
  for (const kind of ['directory', 'git'] as const) {
    const { source, change } = await WORLDS[kind]();
    await change(FILES);
    const commit = await commitOf(source);
    expect(await listed(source, commit)).toEqual(LISTED);
    trees.push(commit);
  }
  // A folder's commit is the name that git gives to the tree.
  const repo = await makeGitRepo();
  cleanUps.push(() => repo[Symbol.asyncDispose]());
  repo.commit(FILES);
  expect(trees[0]).toBe(repo.git(['rev-parse', 'main^{tree}']));
});

test.each(['github', 'git'] as const)(
  'a %s source without a commit is empty, not a source of nothing',
  async (kind) => {
    const { source } = await WORLDS[kind]();
    await expect(source.head({ signal })).rejects.toMatchObject({ code: 'SOURCE_EMPTY' });
  },
);

test('a folder that was named and is not there is missing, not a source of nothing', async () => {
  const source = directorySource({ dir: '/nowhere/at/all', clock: systemClock });
  await expect(source.head({ signal })).rejects.toMatchObject({ code: 'ASSETS_UNREADABLE' });
});
