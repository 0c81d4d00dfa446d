import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_GUARDS } from '../../src/registry/guards.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, type SyncRoomOptions, sourceOf } from '../support/sync.ts';
import { refuseStrayKeys } from '../support/undeclared-keys.ts';

let redis: TestRedis;
let github: GithubStandIn;
const rooms: SyncRoom[] = [];
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  github = await startGithub();
});
afterEach(async () => {
  await refuseStrayKeys(redis.client());
  for (const room of rooms.splice(0)) await room[Symbol.asyncDispose]();
  await redis.flush();
  await github[Symbol.asyncDispose]();
});

async function aRoom(options: Partial<SyncRoomOptions> = {}): Promise<SyncRoom> {
  const room = await aSyncRoom(redis, { source: sourceOf(github), ...options });
  rooms.push(room);
  return room;
}
/** What the stand-in was asked since the last look. */
const asked = () =>
  github.seen
    .splice(0)
    .map(({ method, path, host }) =>
      host === 'archive' ? 'ARCHIVE' : `${method} ${path.replace(/[0-9a-f]{40}/, 'SHA')}`,
    );

describe('a sync', () => {
  test('brings what was added, changed and removed, and says so', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a'), 'prompts/b.yaml': aManifest('b'), 'README.md': '#' });
    expect(await room.run()).toMatchObject({ outcome: 'published', commit: github.repo.head(), counts: { added: 2 } });
    expect(await room.ids()).toEqual(['a', 'b']);

    github.repo.commit({
      'prompts/a.yaml': aManifest('a', 'author: Ann\n'),
      'prompts/b.yaml': undefined,
      'skills/c/manifest.yaml': aManifest('c'),
    });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 1, changed: 1, removed: 1 } });
    expect(await room.ids()).toEqual(['a', 'c']);
    expect(await room.connection.commands.hget(room.keys.assetMetadata('a'), 'author')).toBe('Ann');
    expect(await room.registry.state()).toMatchObject({
      sync_status: 'idle',
      last_commit_sha: github.repo.head(),
      synced_count: 2,
    });
  });

  test('asks one free question when nothing changed', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    asked();
    const before = github.now.remaining;
    expect(await room.run({ trigger: 'schedule' })).toMatchObject({ outcome: 'unchanged' });
    expect(github.seen).toMatchObject([{ status: 304, cost: 0 }]);
    expect(github.now.remaining).toBe(before);
    expect(asked()).toEqual(['GET /repos/acme/assets/commits/HEAD']);
  });

  test('needs the head, the tree and one batch for a few changes', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    asked();
    github.repo.commit(
      Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)])),
    );
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 25 } });
    expect(asked()).toEqual([
      'GET /repos/acme/assets/commits/HEAD',
      'GET /repos/acme/assets/git/trees/SHA?recursive=1',
      'POST /graphql',
    ]);
  });

  test('fetches the first time by archive, in four requests, and gets files that the archive leaves out', async () => {
    const room = await aRoom();
    const many = Object.fromEntries(
      Array.from({ length: 150 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)]),
    );
    github.repo.commit({ ...many, '.gitattributes': 'prompts/p7.yaml export-ignore\n' });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 150 } });
    const requests = asked();
    expect(requests).toEqual([
      'POST /graphql',
      'GET /repos/acme/assets/git/trees/SHA?recursive=1',
      'GET /repos/acme/assets/tarball/SHA',
      'ARCHIVE',
      'POST /graphql',
    ]);
  });

  test('fetches nothing for a rename or a revert', async () => {
    const room = await aRoom();
    const first = github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': undefined, 'prompts/moved.yaml': aManifest('a') });
    asked();
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { moved: 1, removed: 0, added: 0 } });
    // The one question besides head and tree asks who the repository is.
    expect(asked()).toHaveLength(3);
    github.repo.commit(
      { 'prompts/moved.yaml': undefined, 'prompts/a.yaml': aManifest('a') },
      { on: github.repo.head() },
    );
    await room.run();
    expect(github.repo.head()).not.toBe(first);
    expect(await room.ids()).toEqual(['a']);
  });

  test('takes a push that touches no asset without fetching anything', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    asked();
    const commit = github.repo.commit({ 'README.md': 'new' });
    expect(await room.run()).toMatchObject({ outcome: 'published', commit, counts: { changed: 0 } });
    expect(asked()).toHaveLength(2);
    expect(await room.run({ trigger: 'schedule' })).toMatchObject({ outcome: 'unchanged' });
  });

  test('mends deleted and edited keys without asking for content', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a'), 'prompts/b.yaml': aManifest('b') });
    await room.run();
    asked();
    await room.connection.commands.del(room.keys.assetMetadata('a'));
    await room.connection.commands.hset(room.keys.assetMetadata('b'), { name: 'forged' });
    expect(await room.run({ trigger: 'schedule' })).toMatchObject({ outcome: 'repaired', repaired: ['a', 'b'] });
    expect(await room.connection.commands.hget(room.keys.assetMetadata('b'), 'name')).toBe('The b');
    expect(await room.connection.commands.hget(room.keys.assetMetadata('a'), 'id')).toBe('a');
    expect(asked()).toEqual(['GET /repos/acme/assets/commits/HEAD']);
  });

  test('does not believe "unchanged" when its own records are gone', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    await room.connection.commands.flushall();
    github.seen.splice(0);
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 1 } });
    expect(github.seen.some(({ ifNoneMatch }) => ifNoneMatch !== undefined)).toBe(false);
  });

  test('reads everything again, from the cache, when the settings changed', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a'), 'extra/b.yml': aManifest('b') });
    await room.run();
    asked();
    const wider = await aRoom({ include: ['**/*.{yaml,yml}'] });
    expect(await wider.run()).toMatchObject({ outcome: 'published', counts: { added: 1 } });
    expect(await wider.ids()).toEqual(['a', 'b']);
    expect(asked()).toEqual([
      'GET /repos/acme/assets/commits/HEAD',
      'GET /repos/acme/assets/git/trees/SHA?recursive=1',
      'POST /graphql',
    ]);
  });

  test('shows in a dry run what would change, and changes nothing', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    const run = await room.run({ dryRun: true });
    expect(run).toMatchObject({
      outcome: 'planned',
      dry_run: true,
      counts: { added: 1 },
      changes: [{ op: 'added', id: 'a' }],
    });
    expect(await room.ids()).toEqual([]);
    expect(await room.registry.state()).toMatchObject({ last_commit_sha: undefined });
  });

  test('keeps the last good version of a file that broke, and lists what is wrong', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': 'id: a\ndescription: bad: yaml\n' });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { bad: 1, removed: 0 } });
    expect(await room.ids()).toEqual(['a']);
    expect(await room.registry.state()).toMatchObject({ sync_status: 'idle', degraded: true, error_count: 1 });
  });

  test('names hostile paths, links and submodules and goes on with the rest', async () => {
    const room = await aRoom();
    github.repo.commit({
      'prompts/a.yaml': aManifest('a'),
      'prompts/b\u202Ec.yaml': aManifest('b'),
      'prompts/link.yaml': { mode: '120000', content: '../../etc/passwd' },
      'prompts/sub.yaml': { mode: '160000', content: 'a'.repeat(40) },
    });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 1, bad: 1, skipped: 2 } });
  });

  test('reads files with any name and mode, and never fetches one that is too large', async () => {
    const room = await aRoom();
    const large = `#${'x'.repeat(600_000)}\n`;
    github.repo.commit({
      'prompts/we ird#1?&.yaml': aManifest('odd'),
      'prompts/run.yaml': { mode: '100755', content: aManifest('run') },
      'prompts/folder.yaml/inner.yaml': aManifest('inner'),
      'prompts/line\nbreak.yaml': aManifest('broken'),
      'prompts/large.yaml': large,
    });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 3, bad: 2 } });
    expect(await room.ids()).toEqual(['inner', 'odd', 'run']);
    expect((await room.registry.path('prompts/large.yaml'))?.problem).toMatchObject({ code: 'TOO_LARGE' });
    expect((await room.registry.path('prompts/line\nbreak.yaml'))?.problem).toMatchObject({ code: 'PATH_HOSTILE' });
    const sha = github.repo.git(['rev-parse', 'main:prompts/large.yaml']);
    expect(github.seen.filter(({ path }) => path.includes(sha))).toEqual([]);
    expect((await room.registry.blobs.has([sha])).size).toBe(0);
  });

  test('starts again from the head when a file of its listing is gone, as after a force-push', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    // The blob is neither in the batch nor by itself, once.
    const blob = github.repo.git(['rev-parse', 'main:prompts/b.yaml']);
    github.now.brokenBlobs.add(blob);
    github.fault({ on: /git\/blobs/, status: 404, body: '{"message":"Not Found"}', times: 1 });
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await room.ids()).toEqual(['a', 'b']);
  });

  test('gets the rest by itself when the archive breaks off', async () => {
    const room = await aRoom();
    const files = Array.from({ length: 120 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)]);
    github.repo.commit(Object.fromEntries(files));
    github.fault({ on: /^ARCHIVE/, tearAfter: 900 });
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 120 } });
  });

  test('of renames in a chain, and of an id that another file takes over, leaves each asset once', async () => {
    const room = await aRoom();
    github.repo.commit({
      'prompts/1.yaml': aManifest('a'),
      'prompts/2.yaml': aManifest('b'),
      'prompts/3.yaml': aManifest('c'),
    });
    await room.run();
    github.repo.commit({
      'prompts/1.yaml': aManifest('b'),
      'prompts/2.yaml': aManifest('c'),
      'prompts/3.yaml': aManifest('d'),
    });
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await room.ids()).toEqual(['b', 'c', 'd']);
    github.repo.commit({ 'prompts/1.yaml': undefined, 'prompts/4.yaml': aManifest('b') });
    await room.run();
    expect(await room.ids()).toEqual(['b', 'c', 'd']);
    expect(await room.connection.commands.hget(room.keys.assetMetadata('b'), 'github_path')).toBe('prompts/4.yaml');
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });

  test('keeps everything when the branch has no assets any more, or the repository no commit', async () => {
    const room = await aRoom({ guards: DEFAULT_GUARDS });
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': undefined, 'README.md': 'moved away' });
    await room.run();
    expect(await room.ids()).toEqual(['a']);
    github.repo.git(['update-ref', '-d', 'refs/heads/main']);
    expect(await room.run()).toMatchObject({ outcome: 'failed', problem: { code: 'SOURCE_EMPTY' } });
    expect(await room.ids()).toEqual(['a']);
  });

  test('holds a change that deletes most assets until a person releases it, then needs no new push', async () => {
    const room = await aRoom({ guards: DEFAULT_GUARDS });
    const files = Object.fromEntries(['a', 'b', 'c', 'd'].map((id) => [`prompts/${id}.yaml`, aManifest(id)]));
    github.repo.commit(files);
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': undefined, 'prompts/b.yaml': undefined, 'prompts/c.yaml': undefined });
    await room.run();
    expect(await room.ids()).toEqual(['a', 'b', 'c', 'd']);
    const [hold] = await room.registry.holds();
    expect(hold).toMatchObject({ kind: 'mass-delete' });
    await room.run({ trigger: 'schedule' });
    expect(await room.ids()).toEqual(['a', 'b', 'c', 'd']);
    await room.registry.release(hold!.id, 'ann', 'they are retired');
    await room.run({ trigger: 'schedule' });
    expect(await room.ids()).toEqual(['d']);
  });

  test('holds a rewritten history', async () => {
    const room = await aRoom({ guards: DEFAULT_GUARDS });
    const root = github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    await room.run();
    github.repo.forcePush(root);
    github.repo.commit({ 'prompts/c.yaml': aManifest('c') });
    expect(await room.run()).toMatchObject({ outcome: 'held', hold: { kind: 'history-rewrite' } });
    expect(await room.ids()).toEqual(['a', 'b']);
  });

  test('asks the free question while a rewritten history waits, and forgets the hold when the branch is put back', async () => {
    const room = await aRoom({ guards: DEFAULT_GUARDS });
    const root = github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    const good = github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    await room.run();
    github.repo.forcePush(root);
    const rewritten = github.repo.commit({ 'prompts/c.yaml': aManifest('c') });
    expect(await room.run()).toMatchObject({ outcome: 'held' });
    github.seen.splice(0);
    expect(await room.run({ trigger: 'webhook', barrier: rewritten })).toMatchObject({
      outcome: 'unchanged',
      commit: good,
    });
    expect(github.seen).toMatchObject([{ status: 304, cost: 0 }]);
    expect(await room.sync.statusOf('main')).toMatchObject({ state: 'held' });

    github.repo.forcePush(good);
    expect(await room.run()).toMatchObject({ commit: good });
    expect(await room.registry.holds()).toEqual([]);
    expect(await room.sync.statusOf('main')).toMatchObject({ state: 'idle' });
    expect(await room.ids()).toEqual(['a', 'b']);
  });

  test('is held while a single asset waits for a person, and well again when it was released', async () => {
    const room = await aRoom({ guards: DEFAULT_GUARDS });
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a', 'permissions: [shell]\n') });
    const { holds } = await room.run();
    expect(await room.sync.statusOf('main')).toMatchObject({ state: 'held' });
    const [hold] = await room.registry.holds();
    expect(holds).toEqual([{ id: hold!.id, kind: 'permission-widening', says: hold!.says }]);
    // It is told once, however many syncs it waits.
    github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    expect(await room.run()).not.toHaveProperty('holds');
    await room.registry.release(hold!.id, 'ann', 'it may');
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await room.sync.statusOf('main')).toMatchObject({ state: 'idle' });
  });

  test('follows a rewritten history where the guard is off', async () => {
    const room = await aRoom();
    const root = github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    await room.run();
    github.repo.forcePush(root);
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { removed: 1 } });
    expect(await room.ids()).toEqual(['a']);
  });

  test('serves many askers with one more sync', async () => {
    const room = await aRoom();
    github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
    const tickets = Array.from({ length: 6 }, () => room.sync.ask('main', { trigger: 'webhook' })[0]!);
    await Promise.all(tickets.map(({ done }) => done));
    expect(new Set(tickets.map(({ id }) => id)).size).toBeLessThanOrEqual(2);
  });

  test('tells its phases in order, with numbers that only rise', async () => {
    const room = await aRoom();
    github.repo.commit(
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)])),
    );
    const told: { phase: string; done: number; total: number }[] = [];
    room.sync.listen((news) => void (news.kind === 'progress' && told.push(news.running)));
    await room.run();
    expect([...new Set(told.map(({ phase }) => phase))]).toEqual(['resolve', 'list', 'fetch', 'publish']);
    for (const { done, total } of told) expect(done).toBeLessThanOrEqual(total);
    const fetched = told.filter(({ phase }) => phase === 'fetch').map(({ done }) => done);
    expect(fetched).toEqual(fetched.toSorted((a, b) => a - b));
    expect(fetched.at(-1)).toBe(60);
  });
});

test('two daemons at once publish one after the other or not at all', async () => {
  const [one, two] = [await aRoom(), await aRoom()];
  github.repo.commit(
    Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)])),
  );
  const runs = await Promise.all([one.run(), two.run()]);
  expect(runs.map(({ outcome }) => outcome).sort()).toEqual(expect.arrayContaining(['published']));
  for (const { outcome } of runs) expect(['published', 'unchanged', 'busy']).toContain(outcome);
  expect((await one.registry.state()).generation).toBe(1);
  expect(await one.registry.check()).toEqual({ outcome: 'sound' });
});
