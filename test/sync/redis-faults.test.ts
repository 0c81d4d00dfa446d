import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { STAGE_ABOVE } from '../../src/registry/publish.ts';
import { cutExecs } from '../support/exec-cutter.ts';
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

const idsOf = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`).sort();

/** Everything that was told of a commit, in the order of ids: what is told twice is there twice. */
async function told(commit: string) {
  const client = redis.client();
  const entries = await client.xrange('asset:sync:events', '-', '+');
  const events = entries.map(([, fields]) => ({ id: fieldOf(fields, 'id'), commit: fieldOf(fields, 'commit') }));
  return {
    changed: (await client.lrange('asset:sync:changed', -10_000, -1)).sort(),
    events: events.flatMap((event) => (event.commit === commit ? [event.id] : [])).sort(),
    waiting: await client.llen('asset:sync:outbox'),
  };
}
const fieldOf = (fields: readonly string[], name: string) => fields[fields.indexOf(name) + 1] ?? '';

/** Keys as they are now, to be put back as a server has them that never heard of what came after. */
async function copyOf(which: RegExp): Promise<{ readonly which: RegExp; readonly dumps: Map<string, Buffer> }> {
  const client = redis.client();
  const names = (await client.keys('asset:*')).filter((name) => which.test(name));
  const dumps = await Promise.all(names.map(async (name) => [name, await client.dumpBuffer(name)] as const));
  return { which, dumps: new Map(dumps) };
}

async function putBack({ which, dumps }: Awaited<ReturnType<typeof copyOf>>): Promise<void> {
  const client = redis.client();
  const later = (await client.keys('asset:*')).filter((name) => which.test(name) && !dumps.has(name));
  if (later.length > 0) await client.del(...later);
  for (const [name, dump] of dumps) await client.restore(name, 0, dump, 'REPLACE');
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

      // Until the connections are back, syncs fail.
      await until('a sync that ends well', async () => /published|unchanged|repaired/.test((await room.run()).outcome));
      expect(await served()).toEqual({ commit: after, count, authors: [`v${cutAt}`] });
      expect(await room.registry.check()).toEqual({ outcome: 'sound' });
      before = after;
    }
    expect(cuts).toBeGreaterThan(6);
  });

  test.each(['before', 'after'] as const)(
    'whose connection breaks %s any EXEC publishes once: nothing is told twice',
    {
      timeout: 120_000,
    },
    async (when) => {
      await using wire = await cutExecs(redis);
      await using broken = await aSyncRoom(wire, { source: sourceOf(github) });
      let before = push(count, 'v0');
      await broken.run();
      const left = { old: 0, new: 0 };
      for (let nth = 1, wasCut = true; wasCut; nth++) {
        await redis.client().del('asset:sync:changed');
        const after = push(count, `v${nth}`);
        wire.cutAt(nth, when);
        const { outcome } = await broken.run();
        wasCut = wire.mend();
        const { commit, ...rest } = await served();
        expect([before, after]).toContain(commit);
        expect(rest).toEqual({ count, authors: [commit === after ? `v${nth}` : `v${nth - 1}`] });
        if (wasCut && outcome === 'failed') left[commit === after ? 'new' : 'old'] += 1;

        await until('a sync that ends well', async () => /published|unchanged/.test((await broken.run()).outcome));
        expect(await served()).toEqual({ commit: after, count, authors: [`v${nth}`] });
        expect(await broken.registry.check()).toEqual({ outcome: 'sound' });
        expect(await told(after)).toEqual({ changed: idsOf(count), events: idsOf(count), waiting: 0 });
        before = after;
      }
      // Both must have been met: a publish that Redis never got, and one that it ran although the sync never heard of it.
      expect(left[when === 'before' ? 'old' : 'new']).toBeGreaterThan(0);
    },
  );

  test('whose last writes a failover loses is made good by the next poll, from what Redis has, at no cost', async () => {
    const before = push(count, 'old');
    await room.run();
    const lagging = await copyOf(/^asset:(metadata|index|category|digests|order)/);
    const after = push(count, 'new');
    await room.run();

    // The replica that took over had not received everything: some keys are of the commit before.
    await putBack(lagging);
    expect(await served()).toEqual({ commit: after, count, authors: ['old'] });
    const asked = github.seen.length;
    expect(await room.run()).toMatchObject({ outcome: 'repaired' });
    expect(await served()).toEqual({ commit: after, count, authors: ['new'] });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
    // One conditional question that costs nothing, as in every poll: nothing was fetched for the repair.
    expect(github.seen.slice(asked).map(({ status, cost }) => ({ status, cost }))).toEqual([{ status: 304, cost: 0 }]);
    expect(before).not.toBe(after);
  });

  test('that a failover takes back as a whole is published again, with no manifest fetched twice', async () => {
    const before = push(count, 'old');
    await room.run();
    const whole = await copyOf(/^asset:(?!blob)/);
    const after = push(count, 'new');
    await room.run();
    await putBack(whole);
    expect(await served()).toEqual({ commit: before, count, authors: ['old'] });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });

    const asked = github.seen.length;
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await served()).toEqual({ commit: after, count, authors: ['new'] });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
    // Which commit, what is in it, whether it descends from the one before: nothing of what Redis has already.
    expect(github.seen.slice(asked)).toHaveLength(3);
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
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await served()).toEqual({ commit: after, count, authors: ['new'] });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });
});

test('a sync whose lock was granted, but the reply to that was lost, knows the lock for its own and goes on', async () => {
  await using wire = await cutExecs(redis);
  await using broken = await aSyncRoom(wire, { source: sourceOf(github) });
  const commit = push(5, 'v1');
  wire.cutAt(1, 'after');

  expect(await broken.run()).toMatchObject({ outcome: 'published', commit });
  expect(wire.mend()).toBe(true);
  // It let go of it, too.
  expect(await redis.client().exists('asset:sync:lock')).toBe(0);
});
