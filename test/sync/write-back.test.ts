import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { MANIFESTS } from '../../src/manifest-globs.ts';
import { blobSha } from '../../src/registry/asset.ts';
import { directorySource } from '../../src/sync/directory-source.ts';
import { gitSource } from '../../src/sync/git-source.ts';
import type { Source } from '../../src/sync/source.ts';
import { WriteBack } from '../../src/sync/write-back.ts';
import { type GitRepo, makeGitRepo } from '../support/git-repo.ts';
import { startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, sourceOf } from '../support/sync.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
const cleanUps: (() => PromiseLike<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await redis.flush();
});

const PATH = 'prompts/a.yaml';
const surroundings = { PATH: process.env.PATH ?? '', HOME: tmpdir() };

/** A source with one asset, and a way to read a file as it is there now. */
interface World {
  readonly source: Source;
  readonly read: (path: string) => Promise<string | undefined>;
}

const WORLDS: Record<string, () => Promise<World>> = {
  async github() {
    const github = await startGithub();
    cleanUps.push(() => github[Symbol.asyncDispose]());
    github.repo.commit({ [PATH]: aManifest('a') });
    return { source: sourceOf(github), read: async (path) => show(github.repo, path) };
  },
  async git() {
    const repo = await makeGitRepo();
    cleanUps.push(() => repo[Symbol.asyncDispose]());
    repo.commit({ [PATH]: aManifest('a') });
    return { source: gitSource({ dir: repo.dir, surroundings }), read: async (path) => show(repo, path) };
  },
  async directory() {
    const dir = await mkdtemp(join(tmpdir(), 'reeve-dir-'));
    cleanUps.push(() => rm(dir, { recursive: true, force: true }));
    await mkdir(join(dir, 'prompts'));
    await writeFile(join(dir, PATH), aManifest('a'));
    return {
      source: directorySource({ dir, clock: systemClock }),
      read: (path) => readFile(join(dir, path), 'utf8').catch(() => undefined),
    };
  },
};

function show(repo: GitRepo, path: string): string | undefined {
  try {
    return `${repo.git(['show', `main:${path}`])}\n`;
  } catch {
    return undefined;
  }
}

async function aWorld(make: () => Promise<World>): Promise<World & { room: SyncRoom; back: WriteBack }> {
  const world = await make();
  const room = await aSyncRoom(redis, { source: world.source });
  cleanUps.push(() => room[Symbol.asyncDispose]());
  await room.run();
  const named = { name: 'main', namespace: undefined, source: world.source, include: MANIFESTS };
  return { ...world, room, back: new WriteBack({ sources: [named], sync: room.sync, clock: systemClock }) };
}

const sha = (text: string) => blobSha(Buffer.from(text));
const as = { message: 'Change it', by: 'ann' };

describe.each(Object.entries(WORLDS))('writing back to a %s source', (_kind, make) => {
  test('creates, changes and deletes, and what was written is served when the call returns', async () => {
    const { room, back, read } = await aWorld(make);
    await back.write('main', { path: 'prompts/b.yaml', bytes: Buffer.from(aManifest('b')) }, as);
    expect(await room.ids()).toEqual(['a', 'b']);
    const edited = aManifest('a', 'author: Ann # who else\n');
    const { commit } = await back.write(
      'main',
      { path: PATH, bytes: Buffer.from(edited), base: sha(aManifest('a')) },
      as,
    );
    expect(await read(PATH)).toBe(edited);
    expect(await room.registry.state()).toMatchObject({ last_commit_sha: commit });
    expect(await room.connection.commands.hget(room.keys.assetMetadata('a'), 'author')).toBe('Ann');
    await back.write('main', { path: 'prompts/b.yaml', base: sha(aManifest('b')) }, as);
    expect(await room.ids()).toEqual(['a']);
    expect(await read('prompts/b.yaml')).toBeUndefined();
  });

  test('refuses when the file is another by now, and says which', async () => {
    const { room, back, read } = await aWorld(make);
    const late = { path: PATH, bytes: Buffer.from('x'), base: 'd'.repeat(40) };
    await expect(back.write('main', late, as)).rejects.toMatchObject({
      code: 'ASSET_CHANGED',
      details: { expected: 'd'.repeat(40), actual: sha(aManifest('a')) },
    });
    await expect(back.write('main', { path: PATH, bytes: Buffer.from('x') }, as)).rejects.toMatchObject({
      code: 'ASSET_CHANGED',
    });
    expect(await read(PATH)).toBe(aManifest('a'));
    expect(await room.ids()).toEqual(['a']);
  });

  test('lets writers take turns: of two with the same base one wins', async () => {
    const { back, read } = await aWorld(make);
    const base = sha(aManifest('a'));
    const tries = ['one', 'two'].map((author) =>
      back.write('main', { path: PATH, bytes: Buffer.from(aManifest('a', `author: ${author}\n`)), base }, as),
    );
    const settled = await Promise.allSettled(tries);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(await read(PATH)).toContain('author: one');
  });
});

test('a path that leads out is refused, by the writer and again by the folder itself', async () => {
  const { back, source } = await aWorld(WORLDS.directory!);
  const signal = AbortSignal.timeout(20_000);
  const head = await source.head({ signal });
  const expected = head.outcome === 'at' ? head.commit : '';
  const bytes = Buffer.from('x');
  for (const path of ['../evil.yaml', '/etc/evil.yaml', 'a/../../evil.yaml', '.git/config']) {
    await expect(back.write('main', { path, bytes }, as)).rejects.toMatchObject({ code: 'ASSET_INVALID' });
    const change = { files: new Map([[path, bytes]]), expected, message: 'Evil' };
    await expect(source.write(change, signal)).rejects.toMatchObject({ code: 'SOURCE_READ_ONLY' });
  }
});

test('a commit is brought here although another daemon is syncing at that moment', async () => {
  const { back, room } = await aWorld(WORLDS.directory!);
  const { connection, keys } = room;
  await connection.commands.hset(keys.assetSyncLock(), { holder: 'another', token: 'theirs', since: 'now' });
  const stop = room.sync.listen((news) => {
    if (news.kind === 'ended' && news.run.outcome === 'busy') void connection.commands.del(keys.assetSyncLock());
  });
  await back.write('main', { path: 'prompts/b.yaml', bytes: Buffer.from(aManifest('b')) }, as);
  expect(await room.ids()).toEqual(['a', 'b']);
  stop();
});

test('an archived repository is read and not written', async () => {
  const github = await startGithub();
  cleanUps.push(() => github[Symbol.asyncDispose]());
  github.repo.commit({ [PATH]: aManifest('a') });
  const { back, room } = await aWorld(async () => ({ source: sourceOf(github), read: async () => undefined }));
  github.now.isArchived = true;
  await expect(back.write('main', { path: 'prompts/b.yaml', bytes: Buffer.from('x') }, as)).rejects.toMatchObject({
    code: 'SOURCE_READ_ONLY',
  });
  expect(await room.run()).toMatchObject({ outcome: 'unchanged' });
  expect(await room.ids()).toEqual(['a']);
});

test('a clone whose files were edited by hand is not written over', async () => {
  const repo = await makeGitRepo();
  const dir = await mkdtemp(join(tmpdir(), 'reeve-clone-'));
  cleanUps.push(
    () => repo[Symbol.asyncDispose](),
    () => rm(dir, { recursive: true, force: true }),
  );
  repo.commit({ [PATH]: aManifest('a') });
  repo.git(['clone', '--quiet', repo.dir, join(dir, 'clone')]);
  const source = gitSource({ dir: join(dir, 'clone'), surroundings });
  const signal = AbortSignal.timeout(20_000);
  const head = await source.head({ signal });
  const expected = head.outcome === 'at' ? head.commit : '';
  const files = new Map([[PATH, Buffer.from(aManifest('a', 'author: Ann\n'))]]);
  const { commit } = await source.write({ files, expected, message: 'Sign it' }, signal);
  expect(await readFile(join(dir, 'clone', PATH), 'utf8')).toContain('author: Ann');
  await writeFile(join(dir, 'clone', PATH), 'my own draft');
  await expect(source.write({ files, expected: commit, message: 'Again' }, signal)).rejects.toMatchObject({
    code: 'SOURCE_READ_ONLY',
  });
  expect(await readFile(join(dir, 'clone', PATH), 'utf8')).toBe('my own draft');
});
