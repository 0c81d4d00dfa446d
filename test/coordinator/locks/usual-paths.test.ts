import { cpSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import { acquire, acquires, release, releases } from '../../../src/coordinator/locks/scripts.ts';
import { defineScript, type Scripts } from '../../../src/redis/script.ts';
import { aLockRoom, asks, held, type LockRoom } from './room.ts';

/**
 * The usual grants and releases are written out a second time, for speed, and so are those of one turn. Here the same calls go
 * to three houses, one of which has only the general way, and one sends all it can as if it came with others: all must answer,
 * write, publish and tell the same.
 */
let dir: string;
let usual: House;
let general: House;
let together: House;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'reeve-usual-'));
  usual = await aHouse((scripts) => scripts);
  const plain = await withoutUsualPaths();
  general = await aHouse((scripts) => ({
    run: (script, ...given) => scripts.run((plain.get(script) ?? script) as typeof script, ...given),
  }));
  together = await aHouse(withOthers);
});
afterAll(async () => {
  await Promise.all([usual, general, together].map((house) => house?.stop()));
  await rm(dir, { recursive: true, force: true });
});

const AGENTS = ['ann', 'bob', 'cyd'] as const;
const LOCKS = ['task:1', 'task:2'] as const;

interface Named {
  readonly agent: string;
  readonly lock: string;
  readonly id: number;
}
type Step =
  | (Named & { readonly do: 'acquire'; readonly how: How })
  | (Named & { readonly do: 'release' | 'cancel' | 'beat' })
  | { readonly do: 'pass'; readonly ms: number };
type How = keyof typeof HOW;
const HOW = {
  once: {},
  waiting: { waitMs: 20_000, purpose: 'why' },
  again: { waitMs: 20_000, queued: true },
  // Redis ends the key by its own clock: not before a slow run is through.
  short: { leaseMs: 9_000 },
  agent: { leaseClass: 'agent', waitMs: 20_000 },
  limited: { maxHoldMs: 9_000 },
} as const;

const who = {
  agent: fc.constantFrom(...AGENTS),
  lock: fc.constantFrom(LOCKS[0], LOCKS[0], LOCKS[1]),
  id: fc.integer({ min: 1, max: 4 }),
};
const HOWS = ['once', 'waiting', 'waiting', 'again', 'again', 'again', 'short', 'agent', 'limited'] as const;
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('acquire' as const), how: fc.constantFrom(...HOWS), ...who }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('release' as const), ...who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'beat' as const), ...who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1_500, 11_000, 31_000) }) },
);

/** Everyone has a request of their own; the fourth is anybody's. */
const OWN = { ann: 1, bob: 2, cyd: 3 } as const;
type Agent = keyof typeof OWN;
const took = (agent: Agent, how: How, id = OWN[agent]): Step => ({ do: 'acquire', agent, lock: 'task:1', how, id });
const gave = (agent: Agent, id = OWN[agent]): Step => ({ do: 'release', agent, lock: 'task:1', id });
const STORIES: Record<string, readonly Step[]> = {
  'one after the other': [took('ann', 'once'), gave('ann'), took('bob', 'waiting'), gave('bob'), gave('bob')],
  'a line of three': [
    ...[took('ann', 'waiting'), took('bob', 'waiting'), took('cyd', 'waiting'), gave('ann'), took('bob', 'again')],
    ...[gave('bob'), took('cyd', 'again'), gave('cyd')],
  ],
  'one behind comes first': [
    took('ann', 'once'),
    took('bob', 'waiting'),
    took('cyd', 'waiting'),
    gave('ann'),
    took('cyd', 'again'),
  ],
  'the first in line fell silent': [
    ...[
      took('ann', 'once'),
      took('bob', 'waiting'),
      { do: 'pass', ms: 11_000 } as const,
      took('cyd', 'waiting'),
      gave('ann'),
    ],
    ...[took('bob', 'again'), took('cyd', 'again')],
  ],
  'the only one in line fell silent': [
    ...[
      took('ann', 'once'),
      took('bob', 'waiting'),
      gave('ann'),
      { do: 'pass', ms: 11_000 } as const,
      took('bob', 'again'),
    ],
  ],
  'a spent request': [took('ann', 'once'), gave('ann'), took('ann', 'once'), took('ann', 'again')],
  'a spent request after those who waited': [
    ...[
      took('ann', 'once'),
      took('bob', 'waiting'),
      gave('ann'),
      took('bob', 'again'),
      gave('ann'),
      took('ann', 'once'),
    ],
    ...[gave('bob'), took('ann', 'once')],
  ],
  'a lease that ran out': [took('ann', 'short'), { do: 'pass', ms: 11_000 }, took('bob', 'once'), gave('ann')],
  'a grant of somebody else': [took('ann', 'once'), gave('bob', OWN.ann), gave('ann')],
};

describe('the usual paths do what the general ones do', () => {
  test.each(Object.entries(STORIES))('%s', async (_, steps) => {
    const [one, other, third] = await all(steps);

    expect(one).toEqual(other);
    expect(third).toEqual(other);
  });

  test('whatever agents do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        const [one, other, third] = await all(steps);
        expect(one).toEqual(other);
        expect(third).toEqual(other);
      }),
      { numRuns: 60 },
    );
  }, 120_000);
});

/** What came of each step in each house. */
async function all(steps: readonly Step[]): Promise<unknown[][]> {
  const houses = [usual, general, together];
  await Promise.all(houses.map((house) => house.reset()));
  const seen: unknown[][] = houses.map(() => []);
  for (const each of steps) for (const [n, house] of houses.entries()) seen[n]?.push([each, await house.take(each)]);
  return seen;
}

/** Usual requests go to the script for those of one turn first, and alone only if it has no answer. */
function withOthers(scripts: Scripts): Scripts {
  const first = async (script: unknown, lock: string, args: Asked): Promise<string | undefined> => {
    if (args.shape !== 'tx') return undefined;
    const request = [lock, args.agent, args.lock_id];
    if (script === release && args.forget === 0) return (await scripts.run(releases, {}, { asked: request }))[0];
    if (script !== acquire || args.lease_class !== 'process' || args.hold_us !== 0 || args.wait.startsWith('again'))
      return undefined;
    const asked = [...request, String(args.lease_us), args.purpose];
    return (await scripts.run(acquires, {}, { asked }))[0];
  };
  return {
    run: async (script, keys, args, on) => {
      const [lock] = (keys as { all?: readonly string[] }).all ?? [];
      const answer = lock && (await first(script, lock, args as unknown as Asked));
      return answer ? script.reply(answer) : scripts.run(script, keys, args, on);
    },
  };
}
interface Asked {
  readonly shape: string;
  readonly agent: string;
  readonly lock_id: string;
  readonly lease_us: number;
  readonly purpose: string;
  readonly wait: string;
  readonly lease_class: string;
  readonly hold_us: number;
  readonly forget: number;
}
interface House {
  /** Does it; answers what came of it: the outcome, what was published, and everything that Redis holds. */
  take(step: Step): Promise<unknown>;
  reset(): Promise<void>;
  stop(): Promise<void>;
}

async function aHouse(using: (scripts: Scripts) => Scripts): Promise<House> {
  const room: LockRoom = await aLockRoom();
  const { connection, events } = room;
  const options = { connection, events, keyspace: { mode: 'standalone' }, limits: () => room.limits } as const;
  const locks = new Locks({ ...options, scripts: using(room.scripts) });
  const observer = new Redis(room.redis.options);
  const listener = new Redis(room.redis.options);
  const published: string[] = [];
  let told: (() => void) | undefined;
  listener.on('pmessage', (_, channel: string, word: string) => {
    if (word === 'that is all') told?.();
    else published.push(`${channel} ${word}`);
  });
  await listener.psubscribe('ade:lock:*');
  const heard = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    told = resolve;
    await observer.publish('ade:lock:end', 'that is all');
    await promise;
    return published.splice(0);
  };
  return {
    take: async (each) => {
      const outcome = await doneBy(locks, room, each);
      return { outcome: timeless(outcome), published: await heard(), held: await everything(observer) };
    },
    reset: () => room.reset(),
    stop: async () => {
      observer.disconnect();
      listener.disconnect();
      await room.stop();
    },
  };
}

async function doneBy(locks: Locks, room: LockRoom, each: Step): Promise<unknown> {
  if (each.do === 'pass') return room.pass(each.ms);
  const lockId = `request-${each.id}`;
  const grant = held(each.agent, each.lock, lockId);
  switch (each.do) {
    case 'acquire':
      return asks(locks)(each.agent, each.lock, { lockId, ...HOW[each.how] });
    case 'release':
      return locks.release(grant);
    case 'cancel':
      return locks.cancelWait(grant);
    case 'beat':
      return locks.heartbeat(grant);
  }
}

/** They do the same, but not in the same microsecond. */
const timeless = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value ?? null)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then')
      .replaceAll(/(?<=Ms":)\d+|\d{3,}/g, '0'),
  );

async function everything(redis: Redis): Promise<unknown> {
  const found: Record<string, unknown> = {};
  for (const key of (await redis.keys('*')).sort()) {
    const [content, ttl] = [await contentOf(redis, key), await redis.ttl(key)];
    // In minutes, so that neither house is on the edge of another number.
    found[key] = [timeless(content), Math.ceil(ttl / 60)];
  }
  return found;
}

async function contentOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.hgetall(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'set':
      return (await redis.smembers(key)).sort();
    case 'stream':
      return (await redis.xrange(key, '-', '+')).map(([, fields]) => fields);
    default:
      return redis.get(key);
  }
}

/** The scripts from a copy of their files in which the usual paths are empty. */
async function withoutUsualPaths(): Promise<Map<unknown, unknown>> {
  const lua = 'src/coordinator/locks/lua';
  for (const part of [lua, 'src/redis/lua']) cpSync(part, join(dir, part), { recursive: true });
  for (const file of await readdir(lua)) if (file.startsWith('_usual')) await writeFile(join(dir, lua, file), '');
  const plain = (name: string) => pathToFileURL(join(dir, lua, name));
  return new Map<unknown, unknown>([
    [acquire, defineScript({ ...acquire, file: plain('acquire.lua') })],
    [release, defineScript({ ...release, file: plain('release.lua') })],
  ]);
}
