import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { STAGE_ABOVE } from '../../src/registry/publish.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, sourceOf } from '../support/sync.ts';
import { refuseStrayKeys } from '../support/undeclared-keys.ts';
import { until } from '../support/until.ts';

let redis: TestRedis;
let github: GithubStandIn;
let room: SyncRoom;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  github = await startGithub({ unchecked: true });
  room = await aSyncRoom(redis, { source: sourceOf(github) });
});
afterEach(async () => {
  await refuseStrayKeys(redis.client());
  await room[Symbol.asyncDispose]();
  await redis.flush();
  await github[Symbol.asyncDispose]();
});

const push = (count: number, author: string) =>
  github.repo.commit(
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`, `author: ${author}\n`)]),
    ),
  );

/** The commit that is said to be served, and the authors of everything that is: one of each, or readers saw a mix. */
async function served() {
  const client = redis.client();
  const ids = Object.keys(await client.hgetall('asset:index'));
  const authors = await Promise.all(ids.map((id) => client.hget(`asset:metadata:${id}`, 'author')));
  return {
    commit: await client.hget('asset:sync:state', 'last_commit_sha'),
    count: ids.length,
    authors: [...new Set(authors)],
  };
}

describe.each([
  ['small', 5],
  ['large', STAGE_ABOVE + 10],
])('a %s sync', (_name, count) => {
  test('whose connections are cut at any step leaves one commit, whole, and the next brings the newest', {
    timeout: 240_000,
  }, async () => {
    let before = push(count, 'v0');
    await room.run();
    let cuts = 0;
    for (let cutAt = 1, wasCut = true; wasCut; cutAt++) {
      const after = push(count, `v${cutAt}`);
      let steps = 0;
      const stop = room.sync.listen((news) => {
        if (news.kind === 'progress' && ++steps === cutAt) void redis.client().call('CLIENT', 'KILL', 'TYPE', 'normal');
      });
      await room.run();
      stop();
      wasCut = steps >= cutAt;
      cuts += Number(wasCut);
      const { commit, ...rest } = await served();
      expect([before, after]).toContain(commit);
      expect(rest).toEqual({ count, authors: [commit === after ? `v${cutAt}` : `v${cutAt - 1}`] });

      // What was cut off may have left its lock behind; its time is over now.
      await redis.client().del('asset:sync:lock');
      // Until the connections are back, syncs fail.
      await until('a sync that ends well', async () => /published|unchanged|repaired/.test((await room.run()).outcome));
      expect(await served()).toEqual({ commit: after, count, authors: [`v${cutAt}`] });
      expect(await room.registry.check()).toEqual({ outcome: 'sound' });
      before = after;
    }
    expect(cuts).toBeGreaterThan(6);
  });

  test.each([
    [
      'is full',
      () => redis.client().config('SET', 'maxmemory', '1'),
      () => redis.client().config('SET', 'maxmemory', '0'),
    ],
    [
      'became a replica that cannot be written',
      () => redis.client().replicaof('127.0.0.1', 1),
      () => redis.client().replicaof('NO', 'ONE'),
    ],
  ])('into a Redis that %s fails with a reason, and is made good afterwards', async (_what, harm, mend) => {
    const before = push(count, 'old');
    await room.run();
    const after = push(count, 'new');
    await harm();
    try {
      expect(await room.run()).toMatchObject({ outcome: 'failed', problem: { message: expect.stringMatching(/./) } });
      expect(await served()).toEqual({ commit: before, count, authors: ['old'] });
    } finally {
      await mend();
    }
    await redis.client().del('asset:sync:lock');
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await served()).toEqual({ commit: after, count, authors: ['new'] });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });
});
