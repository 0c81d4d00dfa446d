import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { Board } from '../support/chaos/board.ts';
import { Crowd } from '../support/chaos/crowd.ts';
import { Person } from '../support/chaos/person.ts';
import { type ChaosSize, type Fault, planChaos, Random } from '../support/chaos/plan.ts';
import { expectSoundEnd } from '../support/chaos/verdict.ts';
import { aWorld, type World } from '../support/chaos/world.ts';
import { until } from '../support/until.ts';

/** CHAOS_SEED runs a plan again; CHAOS_SCALE makes all of it so many times larger. See CONTRIBUTING.md. */
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const scale = Number(process.env.CHAOS_SCALE ?? 1);
const SIZE: ChaosSize = {
  tasks: 2_000 * scale,
  modern: 13,
  workers: 2,
  raw: 5,
  agentKills: 50 * scale,
  daemonKills: 5 * scale,
  redisKills: 5 * scale,
  fileLocks: 3 * scale,
  edits: 10 * scale,
};
const LIMIT_MS = 300_000 * scale;

test(`twenty agents finish every task exactly once while all around them is killed (CHAOS_SEED=${seed})`, {
  timeout: LIMIT_MS + 60_000,
}, async () => {
  const random = new Random(seed);
  const { rows, faults } = planChaos(random, SIZE);
  await using world = await aWorld({ rows });
  const board = new Board();
  const crowd = new Crowd({ world, board, random: random.fork(), size: SIZE });
  const person = new Person(world.prd, random.fork());
  const redis = world.plainClient();
  const counted = async (field: string) => Number(await redis.hget('odyssey:coord:counts', field).catch(() => 0));
  try {
    await crowd.gather();
    await strike(faults, { world, board, crowd, person });
    await until(
      'every task is completed',
      async () =>
        (await counted('completed')) >= SIZE.tasks + person.added &&
        (await counted('total')) === SIZE.tasks + person.added,
      LIMIT_MS,
    );
    await crowd.disperse();
  } finally {
    crowd.killAll();
  }
  expect(await crowd.wakeSleepers()).toBeGreaterThan(0);
  await until('the file has it all', async () => (await redis.xlen('odyssey:coord:outbox')) === 0, 20_000);
  await until(
    'progress is put right',
    async () => Number(await redis.hget('odyssey:progress', 'completed')) === SIZE.tasks + person.added,
  );
  // What plain clients wrote over a public status after its end is put right with the next looks.
  await until('public statuses are put right', () => areAll(redis, 'completed'));
  await until('every agent is known', () => areKnown(redis), 60_000);
  expect(board.violations).toEqual([]);
  await expectSoundEnd(world, redis, SIZE.tasks + person.added);
});

async function areAll(redis: Redis, status: string): Promise<boolean> {
  const ids = await redis.zrange('odyssey:coord:tasks', '0', '-1');
  const found = await redis.mget(ids.map((id) => `odyssey:task:${id}:status`));
  return found.every((word) => word === status);
}

/** Plain clients enter themselves. */
async function areKnown(redis: Redis): Promise<boolean> {
  const rows = await redis.keys('odyssey:agent:*');
  const known = new Set(await redis.smembers('odyssey:coord:agents'));
  return rows.every((key) => known.has(key.slice('odyssey:agent:'.length)));
}

interface Stage {
  readonly world: World;
  readonly board: Board;
  readonly crowd: Crowd;
  readonly person: Person;
}

/** One after the other, each at its time; daemon and Redis are up again before the next. */
async function strike(faults: readonly Fault[], { world, board, crowd, person }: Stage): Promise<void> {
  for (const { kind, after } of faults) {
    await board.reached(after);
    if (kind === 'agent') await crowd.killOne();
    else if (kind === 'daemon') await world.killDaemon();
    else if (kind === 'redis') await world.killRedis();
    else if (kind === 'file') await person.lock(2_500);
    else person.edit();
  }
}
