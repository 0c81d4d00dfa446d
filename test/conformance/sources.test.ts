import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { blobSha } from '../../src/registry/asset.ts';
import { directorySource } from '../../src/sync/directory-source.ts';
import { gitSource } from '../../src/sync/git-source.ts';
import { githubClient } from '../../src/sync/github-client.ts';
import { githubSource } from '../../src/sync/github-source.ts';
import type { Entry, Source } from '../../src/sync/source.ts';
import { verified } from '../../src/sync/verified.ts';
import { type Files, makeGitRepo } from '../support/git-repo.ts';
import { startGithub } from '../support/github.ts';

type Content = string | Buffer | undefined | { readonly link: string };

/** A source and a way to change what it shows. */
interface World {
  readonly source: Source;
  readonly change: (files: Readonly<Record<string, Content>>) => Promise<void>;
  readonly hasHistory: boolean;
}

const surroundings = { PATH: process.env.PATH ?? '', HOME: tmpdir() };
const signal = AbortSignal.timeout(60_000);
const cleanUps: (() => PromiseLike<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const asFiles = (files: Readonly<Record<string, Content>>): Files =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [path, asGit(content)]));
const asGit = (content: Content) =>
  typeof content === 'object' && 'link' in content ? { mode: '120000', content: content.link } : content;

const WORLDS: Readonly<Record<string, () => Promise<World>>> = {
  async github() {
    const github = await startGithub();
    cleanUps.push(() => github[Symbol.asyncDispose]());
    const login = { token: github.token };
    const client = githubClient({ apiUrl: github.url, login, source: github.name, fetch, clock: systemClock });
    return {
      source: githubSource({ client, repo: github.name, address: github.name }),
      hasHistory: true,
      change: async (files) => {
        github.repo.commit(asFiles(files));
      },
    };
  },
  async git() {
    const repo = await makeGitRepo('trunk');
    cleanUps.push(() => repo[Symbol.asyncDispose]());
    return {
      source: gitSource({ dir: repo.dir, branch: 'trunk', surroundings }),
      hasHistory: true,
      change: async (files) => {
        repo.commit(asFiles(files));
      },
    };
  },
  async directory() {
    const dir = await mkdtemp(join(tmpdir(), 'reeve-dir-'));
    cleanUps.push(() => rm(dir, { recursive: true, force: true }));
    return {
      source: directorySource({ dir, clock: systemClock }),
      hasHistory: false,
      async change(files) {
        for (const [path, content] of Object.entries(files)) {
          const full = join(dir, path);
          await rm(full, { force: true });
          if (content === undefined) continue;
          await mkdir(dirname(full), { recursive: true });
          if (typeof content === 'object' && 'link' in content) await symlink(content.link, full);
          else await writeFile(full, content);
        }
      },
    };
  },
};

const TOOL = 'id: search\nname: Suche – 検索\n';
const head = async (source: Source): Promise<string> => {
  const at = await source.head({ signal });
  if (at.outcome !== 'at') throw new Error('nothing was known, so it cannot be unchanged');
  return at.commit;
};
const entriesAt = async (source: Source, commit: string) =>
  new Map((await source.list(commit, signal)).entries.map((entry) => [entry.path, entry]));
async function readAll(source: Source, commit: string, wanted: readonly Entry[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { sha, bytes } of verified(source, commit, wanted, { signal }))
    found.set(sha, Buffer.from(bytes).toString('latin1'));
  return found;
}

describe.each(Object.entries(WORLDS))('a %s source', (_kind, make) => {
  test('names its head, says unchanged when asked with it, and names a new one after a change', async () => {
    const { source, change } = await make();
    await change({ 'tools/search.yaml': TOOL });
    const first = await head(source);
    expect(first).toMatch(/^[0-9a-f]{40}$/);
    expect(await source.head({ known: first, signal })).toEqual({ outcome: 'unchanged' });
    await change({ 'tools/search.yaml': `${TOOL}version: 1.0.0\n` });
    const second = await source.head({ known: first, signal });
    expect(second).toMatchObject({ outcome: 'at', commit: expect.not.stringContaining(first) });
  });

  test('lists every file with the SHA and size that Git gives it, and links as links', async () => {
    const { source, change } = await make();
    await change({
      'tools/a b#c?.yaml': TOOL,
      'ünï/manifest.yaml': 'x',
      'skills/link.yaml': { link: '../../etc/passwd' },
    });
    const entries = await entriesAt(source, await head(source));
    expect([...entries.keys()].sort()).toEqual(['skills/link.yaml', 'tools/a b#c?.yaml', 'ünï/manifest.yaml']);
    expect(entries.get('tools/a b#c?.yaml')).toMatchObject({
      sha: blobSha(Buffer.from(TOOL)),
      size: Buffer.byteLength(TOOL),
      mode: '100644',
    });
    expect(entries.get('skills/link.yaml')).toMatchObject({
      mode: '120000',
      sha: blobSha(Buffer.from('../../etc/passwd')),
    });
  });

  test('gives back exactly the bytes, whatever they are', async () => {
    const { source, change } = await make();
    const contents: Record<string, Buffer> = {
      'a.yaml': Buffer.from(TOOL),
      'bom.yaml': Buffer.from('\uFEFFid: x\r\n'),
      'binary.yaml': Buffer.from([0, 255, 254, 10, 13, 0]),
      'latin.yaml': Buffer.from([0x69, 0xe4, 0xff]),
      'empty.yaml': Buffer.alloc(0),
      'large.yaml': Buffer.alloc(300_000, 'äx'),
    };
    await change(contents);
    const commit = await head(source);
    const entries = await entriesAt(source, commit);
    const found = await readAll(source, commit, [...entries.values()]);
    for (const [path, bytes] of Object.entries(contents))
      expect(found.get(entries.get(path)!.sha)).toBe(bytes.toString('latin1'));
  });

  test('reads many files', async () => {
    const { source, change } = await make();
    const many = Object.fromEntries(Array.from({ length: 260 }, (_, at) => [`tools/t${at}.yaml`, `id: t${at}\n`]));
    await change(many);
    const commit = await head(source);
    const { entries } = await source.list(commit, signal);
    const found = new Map<string, string>();
    const totalBytes = entries.reduce((sum, { size }) => sum + size, 0);
    for await (const { sha, bytes } of verified(source, commit, entries, { signal, totalBytes }))
      found.set(sha, Buffer.from(bytes).toString());
    expect([...found.values()].sort()).toEqual(Object.values(many).sort());
  });

  test('does not list what was deleted', async () => {
    const { source, change } = await make();
    await change({ 'tools/a.yaml': 'a', 'tools/b.yaml': 'b' });
    await head(source);
    await change({ 'tools/a.yaml': undefined });
    expect([...(await entriesAt(source, await head(source))).keys()]).toEqual(['tools/b.yaml']);
  });

  test('writes several files as one change on top of what was expected, and only then', async () => {
    const { source, change } = await make();
    await change({ 'tools/a.yaml': 'a', 'tools/b.yaml': 'b' });
    const before = await head(source);
    const files = new Map([
      ['tools/new/manifest.yaml', Buffer.from(TOOL)],
      ['tools/a.yaml', Buffer.from('A')],
      ['tools/b.yaml', undefined],
    ]);
    const { commit } = await source.write(
      { files, expected: before, message: 'Change three files\n\nFor a test.' },
      signal,
    );
    expect(await head(source)).toBe(commit);
    const entries = await entriesAt(source, commit);
    expect([...entries.keys()].sort()).toEqual(['tools/a.yaml', 'tools/new/manifest.yaml']);
    expect([...(await readAll(source, commit, [...entries.values()])).values()].sort()).toEqual(
      ['A', Buffer.from(TOOL).toString('latin1')].sort(),
    );
    await expect(source.write({ files, expected: before, message: 'late' }, signal)).rejects.toMatchObject({
      code: 'SOURCE_MOVED',
      details: { expected: before, actual: commit },
    });
    expect(await head(source)).toBe(commit);
  });

  test('says whether a commit descends from another, where it can know', async () => {
    const { source, change, hasHistory } = await make();
    await change({ 'tools/a.yaml': 'a' });
    const previous = await head(source);
    await change({ 'tools/a.yaml': 'b' });
    const commit = await head(source);
    expect(await source.confirm(commit, { previous, signal })).toEqual({ descends: hasHistory ? true : undefined });
  });

  test('gives up at once when it is told to', async () => {
    const { source, change } = await make();
    await change({ 'tools/a.yaml': 'a' });
    await expect(source.head({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
  });
});

test('a folder, a clone and a repository on GitHub with the same content list the same files', async () => {
  const files = {
    'tools/x/manifest.yaml': TOOL,
    'tools/x.yaml': 'a',
    'tools-extra/y.yaml': 'b',
    'prompts/é.yaml': 'c',
  };
  const lists = await Promise.all(
    Object.values(WORLDS).map(async (make) => {
      const { source, change } = await make();
      await change(files);
      return (await source.list(await head(source), signal)).entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    }),
  );
  expect(lists[0]).toEqual(lists[1]);
  expect(lists[1]).toEqual(lists[2]);
});
