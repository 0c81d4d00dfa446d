import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aPrdFile, FORMAT_A, FORMAT_B, rowA, rowB } from '../support/prd-db.ts';
import { findRedisCli } from '../support/redis-cli.ts';
import { anEstate, type Estate } from './estate.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './tasks/room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = { ...USUAL, rawGraceMs: 5_000 };
});
afterEach(() => expectSound(room));

/** Every way to lose what Redis had, from a slip of the hand to all of it. */
const LOSSES: Readonly<Record<string, () => Promise<unknown>>> = {
  FLUSHALL: () => room.plain.flushall(),
  'the clean-up line of the contract': () => shell(`redis-cli --scan --pattern "odyssey:*" | xargs redis-cli DEL`),
  'the clean-up line for tasks': () => shell(`redis-cli --scan --pattern "odyssey:task:*" | xargs redis-cli DEL`),
  'the clean-up lines for the list, the errors and the progress': () =>
    shell('redis-cli DEL odyssey:task:queue; redis-cli DEL odyssey:errors:list; redis-cli DEL odyssey:progress'),
  'the clean-up line for agents': () => shell(`redis-cli --scan --pattern "odyssey:agent:*" | xargs redis-cli DEL`),
  'SCRIPT FLUSH': () => room.plain.script('FLUSH'),
};

async function shell(script: string): Promise<void> {
  const cli = await findRedisCli();
  const { path, port } = room.redis.options;
  const where = `${path ? `-s '${path}'` : `-p ${port}`} --no-auth-warning -a '${room.redis.password}'`;
  // xargs starts programs, not functions of the shell.
  const pointed = script.replaceAll('redis-cli', `'${cli.program}' ${where}`);
  await promisify(execFile)('bash', ['-c', pointed], { env: { ...process.env, ...cli.env } });
}

/** Six tasks: done, running by ann, running by a plain client, ready, waiting for ann's, failed for good. */
async function inTheMiddle(prd: Awaited<ReturnType<typeof aPrdFile>>, names: readonly string[]): Promise<Estate> {
  const estate = await anEstate(room, prd);
  const [done, working, popped, , , failed] = names as [string, string, string, string, string, string];
  const { work } = room.tasks;
  await work.claim({ agent: 'ann', task: done, leaseClass: 'process' });
  await work.complete({ task: done, agent: 'ann' });
  await work.claim({ agent: 'eve', task: failed, leaseClass: 'process' });
  await work.fail({ task: failed, agent: 'eve' }, { error: 'boom', isFinal: true });
  await work.claim({ agent: 'ann', task: working, leaseClass: 'process' });
  await work.report({ task: working, agent: 'ann' });
  expect(await room.plain.rpop(room.keys.taskQueue())).toBe(popped);
  await room.plain.set(room.keys.taskStatus(popped), 'in_progress');
  await estate.turn();
  return estate;
}

describe.each(Object.keys(LOSSES))('%s while tasks run', (loss) => {
  test.each(['A', 'B'] as const)('format %s: everything stands as it did, and all can be finished', async (format) => {
    const names = format === 'A' ? ['T-1', 'T-2', 'T-3', 'T-4', 'T-5', 'T-6'] : ['1', '2', '3', '4', '5', '6'];
    const [, working, popped, ready, waiting] = names as [string, string, string, string, string];
    const prd = await (format === 'A'
      ? aPrdFile(FORMAT_A, ...names.map((name) => rowA(name, { depends_on: name === 'T-5' ? '["T-2"]' : '[]' })))
      : aPrdFile(FORMAT_B, ...names.map((_, at) => rowB(at + 1))));
    if (format === 'B')
      prd.insert('task_dependencies', {
        task_display_id: 5,
        depends_on_display_id: 2,
        created_at: '2025-10-13T14:46:18+00:00',
      });
    const estate = await inTheMiddle(prd, names);

    await LOSSES[loss]!();
    await estate.turn();
    // Where the list was cleared, the one that was on it is taken for popped, and comes back.
    room.shift(6_000);
    await estate.turn();
    const stations = await room.tasks.standings(names as never);
    const expected = ['done', 'working', 'working', 'ready', 'waiting', 'failed'];
    expect(names.map((name) => stations.get(name as never)?.station)).toEqual(expected);
    await expectSound(room);

    // Nothing is left to compare ann's lease with; the file says that she was at it.
    expect(await room.tasks.work.complete({ task: working, agent: 'ann' })).toMatchObject({ outcome: 'completed' });
    await room.plain.set(room.keys.taskStatus(popped), 'completed');
    await room.plain.set(room.keys.taskResult(popped), '{"notes":"done"}');
    await estate.turn();
    for (const task of [ready, waiting]) {
      expect(await room.tasks.work.claim({ agent: 'zoe' })).toMatchObject({
        outcome: 'claimed',
        task: { task_id: task },
      });
      await room.tasks.work.complete({ task, agent: 'zoe' });
    }
    await estate.turn();
    const failed = format === 'A' ? 'failed' : 'blocked';
    expect(names.map((name) => prd.row(name).status)).toEqual([...Array(5).fill('completed'), failed]);
    expect(await room.tasks.views.progress()).toMatchObject({ total: 6, completed: 5, failed: 1 });
  });
});

test('a Redis that comes back without its last seconds has some work done twice, and nothing lost', async () => {
  const prd = await aPrdFile(FORMAT_A, ...['T-1', 'T-2', 'T-3'].map((name) => rowA(name)));
  const estate = await anEstate(room, prd);
  const { work } = room.tasks;
  await work.claim({ agent: 'ann', task: 'T-1' });
  await estate.turn();
  await room.tasks.store.current();
  const before = await copyOfAll();

  expect(await work.complete({ task: 'T-1', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  await work.claim({ agent: 'ben', task: 'T-2' });
  await estate.turn();
  expect(prd.row('T-1').status).toBe('completed');
  await before.restore();
  await estate.turn();

  // Ann's word may come again; what ben brings is kept, and his task is done by whoever is next.
  const again = await work.complete({ task: 'T-1', agent: 'ann' });
  expect(['completed', 'already', 'late']).toContain(again.outcome);
  expect(await work.complete({ task: 'T-2', agent: 'ben' }, { notes: 'ben was here' })).toBeDefined();
  await estate.turn();
  for (;;) {
    const found = await work.claim({ agent: 'zoe' });
    if (found.outcome !== 'claimed') break;
    await work.complete({ task: found.task.task_id, agent: 'zoe' });
  }
  await estate.turn();
  expect(['T-1', 'T-2', 'T-3'].map((name) => prd.row(name).status)).toEqual(['completed', 'completed', 'completed']);
  expect(await room.tasks.views.progress()).toMatchObject({ total: 3, completed: 3 });
});

/** What an append-only file without its end leaves. */
async function copyOfAll(): Promise<{ restore(): Promise<void> }> {
  const { plain } = room;
  const copies = await Promise.all(
    (await plain.keys('*')).map(async (key) => ({
      key,
      ms: Math.max(0, await plain.pttl(key)),
      bytes: await plain.dumpBuffer(key),
    })),
  );
  return {
    restore: async () => {
      await plain.flushall();
      for (const { key, ms, bytes } of copies) if (bytes) await plain.restore(key, ms, bytes);
    },
  };
}
