import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TaskFunctions } from '../../../src/coordinator/tasks/functions.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import { silentLog } from '../../../src/log.ts';
import { type FoundProgram, findRedisCli } from '../../support/redis-cli.ts';
import { until } from '../../support/until.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

const run = promisify(execFile);

let room: TaskRoom;
let reconciler: Reconciler;
let cli: FoundProgram;
let now = 0;
beforeAll(async () => {
  room = await aTaskRoom();
  cli = await findRedisCli();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = USUAL;
  now = 0;
  const { tasks, locks, events } = room;
  const clock = { ...systemClock, now: () => now };
  const keyspace = { mode: 'standalone' } as const;
  reconciler = new Reconciler({ tasks, locks, events, keyspace, clock, log: silentLog, limits: () => room.limits });
});
afterEach(() => expectSound(room));

/** A shell script of the contract, with its redis-cli pointed at the test's server. */
async function shell(script: string): Promise<string> {
  const { path, port } = room.redis.options;
  const where = `${path ? `-s '${path}'` : `-p ${port}`} --no-auth-warning -a '${room.redis.password}'`;
  const pointed = `redis-cli() { LD_LIBRARY_PATH='${cli.env.LD_LIBRARY_PATH ?? ''}' '${cli.program}' ${where} "$@"; }`;
  const { stdout } = await run('bash', ['-c', `${pointed}\nagent_id=agent-001\n${script}`]);
  return stdout.trim();
}

const PATTERN_1 = `
task_id=$(redis-cli RPOP odyssey:task:queue)
if [ -z "$task_id" ]; then exit 0; fi
deps=$(redis-cli SMEMBERS odyssey:task:$task_id:dependencies)
redis-cli SET odyssey:task:$task_id:status "assigned" >/dev/null
redis-cli HSET odyssey:agent:$agent_id current_task "$task_id" >/dev/null
redis-cli SET odyssey:task:$task_id:status "in_progress" >/dev/null
redis-cli HINCRBY odyssey:progress pending -1 >/dev/null
redis-cli HINCRBY odyssey:progress in_progress 1 >/dev/null
`;
const FINISH = `
redis-cli SET odyssey:task:$task_id:status "completed" >/dev/null
redis-cli SET odyssey:task:$task_id:result '{"task_id":"'$task_id'","files_modified":["package.json"],"notes":"Setup complete"}' >/dev/null
redis-cli HINCRBY odyssey:progress in_progress -1 >/dev/null
redis-cli HINCRBY odyssey:progress completed 1 >/dev/null
echo $task_id
`;

test('a task that a plain client takes and finishes as the contract says is completed once, and releases what waited', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  expect(await shell(PATTERN_1 + FINISH)).toBe('A');
  const seen = await reconciler.once();
  expect(seen).toMatchObject({ taken: ['A'], adopted: ['A completed'] });
  expect(await room.queue()).toEqual(['B']);
  expect(await room.tasks.views.progress()).toMatchObject({ total: 2, completed: 1, pending: 1, in_progress: 0 });
  expect(JSON.parse((await room.client.get(room.keys.taskResult('A')))!)).toMatchObject({
    task_id: 'A',
    agent_id: 'raw.A',
    files_modified: ['package.json'],
    notes: 'Setup complete',
    errors: [],
  });
  expect(await room.client.ttl(room.keys.agent('agent-001'))).toBeGreaterThan(86_000);
});

test('a task that was popped by a client which died comes back', async () => {
  await room.add('A');
  await shell('redis-cli RPOP odyssey:task:queue');
  expect(await reconciler.once()).toMatchObject({ taken: ['A'] });
  expect(await room.client.hget(room.keys.taskLock('A'), 'holder_agent_id')).toBe('raw.A');
  expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({ outcome: 'none' });
  room.shift(31_000);
  expect(await reconciler.once()).toMatchObject({ lost: ['A'] });
  expect(await room.queue()).toEqual(['A']);
});

test('a claim does not hand out what a plain client has just popped, even before anyone noticed', async () => {
  await room.add('A', 'B');
  await shell('redis-cli RPOP odyssey:task:queue');
  expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({ outcome: 'claimed', task: { task_id: 'B' } });
  expect(await room.status('A')).toBe('assigned');
});

test('one that blocks on the list gets what becomes ready, beside others that claim and pop, and each task goes to one', async () => {
  const functions = new TaskFunctions({
    store: room.tasks.store,
    locks: room.locks,
    keyspace: room.keyspace,
    limits: () => room.limits,
    context: () => ({ shift_us: 0, keep: 1_000, source: 'test' }),
    version: 'test',
    clock: systemClock,
    log: silentLog,
  });
  await functions.once();
  const blocked = shell('redis-cli BRPOP odyssey:task:queue 20 | tail -1');
  await until('it waits', async () => (await room.client.info('clients')).includes('blocked_clients:1'));
  await room.add('A', 'B', 'C', 'D');
  const others = [
    shell('redis-cli RPOP odyssey:task:queue'),
    shell('redis-cli -e FCALL odyssey_claim 0 ann | head -1'),
    room.tasks.work.claim({ agent: 'ben' }).then((found) => (found.outcome === 'claimed' ? found.task.task_id : '')),
  ];
  const got = await Promise.all([blocked, ...others]);
  expect(got.toSorted()).toEqual(['A', 'B', 'C', 'D']);
  expect((await reconciler.once()).thrownOut).toEqual([]);
  expect(await room.tasks.views.progress()).toMatchObject({ total: 4, in_progress: 4, pending: 0 });
});

test.each([
  ['no JSON', 'made it', { notes: 'made it' }],
  ['JSON, but no result', '[1, 2]', { notes: '[1, 2]' }],
  ['that of another task', '{"task_id":"B","agent_id":"eve","notes":"ok"}', { agent_id: 'raw.A', notes: 'ok' }],
  ['of the wrong types', '{"notes":5,"files_modified":"x"}', { notes: '{"notes":5,"files_modified":"x"}' }],
  ['no text in any encoding', Buffer.from([0x6f, 0x6b, 0xff, 0xfe]), { notes: 'ok\ufffd\ufffd' }],
  ['20 MB long', 'x'.repeat(20e6), { notes: 'x'.repeat(100_000) }],
])('a result that is %s counts as one, with what can be kept of it', async (_, said, kept) => {
  await room.add('A');
  expect(await room.plain.rpop(room.keys.taskQueue())).toBe('A');
  await room.plain.set(room.keys.taskResult('A'), said);
  await room.plain.set(room.keys.taskStatus('A'), 'completed');
  expect(await reconciler.once()).toMatchObject({ adopted: ['A completed'] });
  const result = JSON.parse((await room.client.get(room.keys.taskResult('A'))) ?? '');
  expect(result).toMatchObject({ task_id: 'A', files_modified: [], errors: [], ...kept });
});

test('one that has said it works is trusted longer, and may finish late', async () => {
  await room.add('A');
  await shell(PATTERN_1);
  await reconciler.once();
  room.shift(120_000);
  expect(await reconciler.once()).toMatchObject({ lost: [] });
  await shell(`task_id=A\n${FINISH}`);
  expect(await reconciler.once()).toMatchObject({ adopted: ['A completed'] });
});

test('an error reported as the contract says is a failure with its text', async () => {
  await room.add('TASK-042');
  await shell(`${PATTERN_1}
redis-cli LPUSH odyssey:errors:list "TASK-042: Prisma schema validation failed" >/dev/null
redis-cli SET odyssey:task:TASK-042:status "failed" >/dev/null
redis-cli HINCRBY odyssey:progress in_progress -1 >/dev/null
redis-cli HINCRBY odyssey:progress failed 1 >/dev/null
redis-cli SET odyssey:task:TASK-042:result '{"task_id":"TASK-042","errors":["Prisma schema validation failed: ..."]}' >/dev/null`);
  expect(await reconciler.once()).toMatchObject({ adopted: ['TASK-042 failed'] });
  expect(await room.tasks.views.rows(await room.tasks.store.ids())).toMatchObject([
    { station: 'waiting', attempts: 1, because: 'Prisma schema validation failed' },
  ]);
  expect(await room.tasks.views.errors(10)).toEqual(['TASK-042: Prisma schema validation failed']);
});

test('what a plain client writes about the work of another is not believed, and put right', async () => {
  await room.add('A');
  await room.tasks.work.claim({ agent: 'ann' });
  await shell('redis-cli SET odyssey:task:A:status completed; redis-cli HINCRBY odyssey:progress completed 7');
  expect(await reconciler.once()).toMatchObject({ reverted: ['A completed'] });
  expect(await room.status('A')).toBe('assigned');
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
});

test('ids pushed by hand, twice or of nothing, leave the list; strange keys are told of', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  await shell(`redis-cli LPUSH odyssey:task:queue B A GHOST
    redis-cli HSET odyssey:tasks:status A done`);
  expect(await reconciler.once()).toMatchObject({ thrownOut: ['GHOST', 'B'], drifted: ['odyssey:tasks:status'] });
  expect(await room.queue()).toEqual(['A']);
  await room.client.del('odyssey:tasks:status');
});

test('the monitor of the contract shows progress, errors and agents', async () => {
  await room.add('A', 'B');
  await room.tasks.work.claim({ agent: 'ann' });
  const seen = await shell(`redis-cli HGETALL odyssey:progress | awk 'NR%2{printf "%s: ",$0;next;}1'
    redis-cli LRANGE odyssey:errors:list 0 4
    redis-cli KEYS "odyssey:agent:*" | while read key; do redis-cli HGETALL "$key"; done`);
  expect(seen).toContain('total: 2');
  expect(seen).toContain('in_progress: 1');
  expect(seen).toContain('working');
});
