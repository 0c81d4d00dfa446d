import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readOutbox } from '../../../src/audit/outbox.ts';
import { restOf } from '../../../src/coordinator/tasks/result.ts';
import { complete, usualClaims, usualCompletions } from '../../../src/coordinator/tasks/scripts.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());

const AGENTS = ['ann', 'ben', 'cat'] as const;
const aStep = fc.oneof(
  fc.record({ verb: fc.constant('claim' as const), agent: fc.nat(AGENTS.length - 1) }),
  fc.record({ verb: fc.constant('complete' as const), agent: fc.nat(AGENTS.length - 1) }),
  fc.record({
    verb: fc.constantFrom('start' as const, 'drop' as const, 'fail' as const),
    agent: fc.nat(AGENTS.length - 1),
  }),
);
/** Tasks of which some wait for others, some work on the same files, some only read, and some ask for what not everyone can. */
const aPlan = fc.record({
  tasks: fc.array(
    fc.record({
      needs: fc.array(fc.nat(7), { maxLength: 2 }),
      files: fc.subarray(['src', 'src/a.ts', 'src/"b"/c.ts', 'docs/x.md'], { maxLength: 2 }),
      reads: fc.boolean(),
      asks: fc.boolean(),
      priority: fc.nat(3),
      timeout: fc.constantFrom(undefined, 10, 3600),
      isFromFile: fc.boolean(),
    }),
    { minLength: 1, maxLength: 8 },
  ),
  steps: fc.array(aStep, { maxLength: 30 }),
  window: fc.constantFrom(2, 1_000),
  unwritten: fc.constantFrom(0, 2, 1_000),
  leaseClass: fc.constantFrom('process' as const, 'agent' as const),
});
type Plan = typeof aPlan extends fc.Arbitrary<infer T> ? T : never;

test('what the usual case leaves behind is what every case leaves behind', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(aPlan, async (plan) => {
      const usual = await outcome(plan, true);
      const general = await outcome(plan, false);
      expect(usual).toEqual(general);
    }),
    { numRuns: 60 },
  );
});

test('the usual case is the usual case', async () => {
  await room.reset();
  room.limits = USUAL;
  await room.locks.setCapacity('ann', { maxTasks: 3 });
  await room.add({ task_id: 'A', files_to_modify: ['src/a.ts'] }, { task_id: 'B', depends_on: ['A'] }, 'C');
  const { store } = room.tasks;
  const claims = ['one', 'two', 'three'].flatMap((id) => [
    'ann',
    id,
    'general-purpose',
    'process',
    ' general-purpose ',
    ' ',
    '{}',
  ]);
  const args = { head: store.head, claims };
  const replies = await store.scripts.run(usualClaims, {}, args);
  expect(replies.map(([word, , task]) => [word, task])).toEqual([
    ['CLAIMED', 'A'],
    ['CLAIMED', 'C'],
    ['NONE', '0'],
  ]);
  const completions = ['A', 'one', 'C', 'two', 'C', 'two'].flatMap((text, at) =>
    at % 2 === 0 ? [text, 'ann'] : [text, '', restOf(), '0', '{}'],
  );
  const ends = await store.scripts.run(usualCompletions, {}, { ...store.list(), completions });
  // The last is a repetition: for the script that knows every case to recognise.
  expect(ends.map(([word, , ...released]) => [word, ...released])).toEqual([
    ['COMPLETED', 'B'],
    ['COMPLETED'],
    ['UNUSUAL'],
  ]);
  await room.tasks.ledger.writeUpOnce();
  await expectSound(room);
});

test('what a daemon left when it died is written up by the next, or by whoever looks', async () => {
  for (const look of [
    () => room.tasks.ledger.service().start(),
    () => room.tasks.work.heartbeat({ task: 'B', agent: 'ann' }),
    () => room.tasks.views.progress(),
  ]) {
    await room.reset();
    room.limits = { ...USUAL, unwritten: 1_000 };
    await room.locks.setCapacity('ann', { maxTasks: 3 });
    await room.add(
      { task_id: 'A', files_to_modify: ['src/a.ts'] },
      { task_id: 'B', files_to_modify: ['src/b.ts'] },
      'C',
    );
    const { work } = room.tasks;
    await Promise.all([work.claim({ agent: 'ann' }), work.claim({ agent: 'ann' })]);
    await work.complete({ task: 'A', agent: 'ann' });
    await look();
    expect(await room.plain.exists(room.keys.ledger(), room.keys.openedTasks())).toBe(0);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 1, in_progress: 1, completed: 1 });
    await expectSound(room);
  }
});

/** Plays the plan, with the scripts of the usual case or without them, and answers with everything that is in Redis then. */
async function outcome({ tasks, steps, window, unwritten, leaseClass }: Plan, isUsual: boolean) {
  await room.reset();
  room.limits = { ...USUAL, window, unwritten };
  const { work, store } = room.tasks;
  for (const agent of AGENTS) await room.locks.setCapacity(agent, { maxTasks: agent === 'cat' ? 2 : 1 });
  await room.add(
    ...tasks.map(({ needs, files, reads, asks, priority, timeout, isFromFile }, at) => ({
      task_id: `T${at}`,
      depends_on: needs.filter((need) => need < at).map((need) => `T${need}`),
      ...(reads
        ? { resources: files.map((id) => ({ type: 'file' as never, id, mode: 'shared' as const })) }
        : { files_to_modify: files }),
      requires: asks ? ['C++'] : [],
      priority,
      timeout_seconds: timeout,
      origin: isFromFile ? ('prd' as const) : ('api' as const),
    })),
  );
  const replies: unknown[] = [];
  const held = new Map<string, string[]>(AGENTS.map((agent) => [agent, []]));
  for (const { verb, agent: at } of steps) {
    const agent = AGENTS[at]!;
    if (verb === 'claim') {
      const capabilities = agent === 'ann' ? [] : ['c++'];
      const lockId = isUsual ? undefined : randomUUID();
      const claimed = await work.claim({ agent, capabilities, leaseClass, lockId });
      if (claimed.outcome === 'claimed' && !claimed.again) held.get(agent)!.push(claimed.task.task_id);
      replies.push(claimed);
      continue;
    }
    const task = verb === 'start' ? held.get(agent)![0] : held.get(agent)!.shift();
    if (!task) continue;
    if (verb === 'start') replies.push(await work.report({ task, agent }));
    else if (verb === 'drop') replies.push(await work.drop({ task, agent }, 'back'));
    else if (verb === 'fail') replies.push(await work.fail({ task, agent }, { error: 'boom' }));
    else if (isUsual) replies.push(await work.complete({ task, agent }, { notes: 'done' }));
    else {
      const args = { ...store.common(agent), task, token: '', rest: restOf({ notes: 'done' }), say_raw: 0 };
      const [word, when, ...released] = await store.scripts.run(complete, {}, args);
      replies.push({ outcome: word?.toLowerCase(), at: when, released });
    }
  }
  await room.tasks.ledger.writeUpOnce();
  await expectSound(room);
  return JSON.parse(timeless(JSON.stringify({ replies, redis: await everything() })));
}

/** Moments, tokens and ids of leases differ from one play to the next. */
const timeless = (text: string): string =>
  text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'WHEN')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'LEASE')
    .replace(/\d{10,}(\.\d+)?(-\d+)?/g, 'N');

async function everything() {
  const { plain } = room;
  const found: Record<string, unknown> = {};
  for (const key of (await plain.keys('*')).sort()) {
    const type = await plain.type(key);
    if (type === 'string') found[key] = await plain.get(key);
    else if (type === 'hash') found[key] = hashOf(key, await plain.hgetall(key));
    else if (type === 'set') found[key] = (await plain.smembers(key)).sort();
    else if (type === 'zset') found[key] = await plain.zrange(key, '0', '-1', 'WITHSCORES').then(byMember);
    else if (type === 'list') found[key] = await plain.lrange(key, 0, -1);
    else if (key === room.keys.auditOutbox())
      found[key] = inTime((await readOutbox(room.connection, room.keys, 1_000)).rows.map(({ entry }) => entry));
    else found[key] = inTime((await plain.xrange(key, '-', '+')).map(([, fields]) => fields));
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => JSON.stringify(value) !== '{}'));
}

/** What happened to one task is told in order; of several tasks what happened within some milliseconds may be told by its time alone. */
const inTime = <T>(told: readonly T[]): T[] => told.toSorted((one, other) => timeOf(one).localeCompare(timeOf(other)));
const timeOf = (told: unknown): string => /\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(JSON.stringify(told))?.[0] ?? '';

/** Of a place in an agent's capacity the usual case keeps the token, and not which was the last: a place fences nothing. */
function hashOf(key: string, hash: Record<string, string>) {
  const isPlaces = key.includes(':capacity:fence');
  return Object.fromEntries(Object.entries(hash).filter(([field]) => !isPlaces || field.startsWith('lease:')));
}

const byMember = (flat: readonly string[]) =>
  Object.fromEntries(
    flat.flatMap((member, at) => (at % 2 === 0 ? [[member, flat[at + 1]!.replace(/\d{10,}.*/, 'N')]] : [])),
  );
