import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runChild } from '../support/child.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, sourceOf } from '../support/sync.ts';
import { refuseStrayKeys } from '../support/undeclared-keys.ts';

let redis: TestRedis;
let github: GithubStandIn;
let room: SyncRoom;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  github = await startGithub();
});
afterEach(async () => {
  await refuseStrayKeys(redis.client());
  await room[Symbol.asyncDispose]();
  await redis.flush();
  await github[Symbol.asyncDispose]();
});

const url = (file: string) => new URL(file, import.meta.url).href;

/**
 * A process that syncs and says each step it has done, then stops dead until it is killed: a synchronous wait, so that
 * nothing more of it happens, as with a process that the kernel ends there.
 */
const syncing = (stopAt: number) =>
  runChild(`
    import { writeSync } from 'node:fs';
    import { githubClient } from ${JSON.stringify(url('../../src/sync/github-client.ts'))};
    import { githubSource } from ${JSON.stringify(url('../../src/sync/github-source.ts'))};
    import { systemClock } from ${JSON.stringify(url('../../src/clock.ts'))};
    import { aSyncRoom } from ${JSON.stringify(url('../support/sync.ts'))};
    const name = ${JSON.stringify(github.name)};
    const client = githubClient({ apiUrl: ${JSON.stringify(github.url)}, login: { token: ${JSON.stringify(github.token)} }, source: name, fetch, clock: systemClock });
    const room = await aSyncRoom({ options: ${JSON.stringify(redis.options)} }, { source: githubSource({ client, repo: name, address: name }) });
    let step = 0;
    room.sync.listen((news) => {
      const told = news.kind === 'ended' ? { ended: news.run.outcome } : { phase: news.running.phase, step: news.running.step };
      if (++step === ${stopAt} || news.kind === 'ended') {
        writeSync(1, JSON.stringify(told) + '\\n');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      }
    });
    room.sync.ask('main', { trigger: 'manual' });
  `);

/** More than the number above which a publish is staged, so that both ways of publishing are killed. */
const SIZES = { small: 12, large: 260 } as const;
const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `p${from + at}`);
const filesOf = (names: readonly string[], more = '') =>
  Object.fromEntries(names.map((id) => [`prompts/${id}.yaml`, aManifest(id, more)]));

/** What readers see: every hash, the index and the sets, and the commit they are said to be of. */
async function seen() {
  const { commands } = room.connection;
  const index = await commands.hgetall(room.keys.assetIndex());
  const members = (await commands.smembers(room.keys.assetCategory('prompt'))).sort();
  const authors = await Promise.all(
    Object.keys(index)
      .sort()
      .map(async (id) => `${id} ${await commands.hget(room.keys.assetMetadata(id), 'author')}`),
  );
  return { commit: (await room.registry.state()).last_commit_sha, index: Object.keys(index).sort(), members, authors };
}

describe.each(Object.entries(SIZES))('a %s sync', (_name, size) => {
  test('that is killed at any step leaves the old commit or the new one, and the next sync brings the new one', {
    timeout: 240_000,
  }, async () => {
    room = await aSyncRoom(redis, { source: sourceOf(github) });
    const first = github.repo.commit(filesOf(ids(0, size), 'author: old\n'));
    await room.run();
    const old = await seen();
    expect(old).toMatchObject({ commit: first, index: ids(0, size).sort() });
    const second = github.repo.commit({
      ...filesOf(ids(2, size), 'author: new\n'),
      ...filesOf(ids(size, size + 2), 'author: new\n'),
      'prompts/p0.yaml': undefined,
      'prompts/p1.yaml': undefined,
    });

    await room.run();
    const fresh = await seen();
    expect(fresh).toMatchObject({ commit: second, index: ids(2, size + 2).sort(), members: ids(2, size + 2).sort() });
    github.repo.forcePush(first);
    await room.run();
    github.repo.forcePush(second);

    const killedAt: string[] = [];
    for (let step = 1, isOver = false; !isOver; step++) {
      await using child = syncing(step);
      const told = (await child.next()) as { ended?: string; phase?: string; step?: string };
      isOver = told.ended !== undefined;
      killedAt.push(told.ended ?? `${told.phase} ${told.step ?? ''}`.trim());
      await child.kill('SIGKILL');

      const now = await seen();
      const isOld = now.commit === first;
      expect(now).toEqual(isOld ? old : fresh);

      // The dead one's lock would expire by itself; its time is over now.
      await room.connection.commands.del(room.keys.assetSyncLock());
      // Any daemon that comes next brings the new commit; then everything is set back for the next kill.
      expect(await room.run()).toMatchObject({ outcome: isOld ? 'published' : 'unchanged', commit: second });
      expect(await room.registry.check()).toEqual({ outcome: 'sound' });
      expect(await seen()).toEqual(fresh);
      expect(await room.registry.state()).toMatchObject({ sync_status: 'idle', last_commit_sha: second });
      if (isOver) break;
      github.repo.forcePush(first);
      await room.run();
      expect(await seen()).toEqual(old);
      github.repo.forcePush(second);
    }
    expect(killedAt).toEqual(
      expect.arrayContaining([
        'resolve',
        'list',
        'fetch',
        'publish cleared',
        'publish read',
        'publish committed',
        'publish told',
        'published',
      ]),
    );
  });
});

test('a sync whose lease has gone to another publishes nothing, whatever it knows', async () => {
  room = await aSyncRoom(redis, { source: sourceOf(github) });
  github.repo.commit(filesOf(ids(0, 5)));
  await using sleeper = syncing(6);
  await sleeper.next();
  // Its lease ends while it sleeps, and another one takes over.
  await room.connection.commands.del(room.keys.assetSyncLock());
  const newest = github.repo.commit(filesOf(ids(5, 8)));
  expect(await room.run()).toMatchObject({ outcome: 'published', commit: newest });
  const fence = Number(await room.connection.commands.get(room.keys.assetSyncFence()));
  const plan = { commit: 'c'.repeat(40), puts: [], removes: [], changes: [], paths: new Map(), holds: [] };
  const late = { plan, source: 'main', previousCommit: newest, fence: fence - 1, configFingerprint: 'x' };
  expect(await room.registry.publish(late)).toMatchObject({ outcome: 'stale' });
  expect((await seen()).commit).toBe(newest);
});
