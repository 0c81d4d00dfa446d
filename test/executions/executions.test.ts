import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Lease } from '../../src/coordinator/tasks/lease.ts';
import { Executions } from '../../src/executions/executions.ts';
import { folderFiles } from '../../src/files/folder-files.ts';
import { aTaskRoom, expectSound, type Sketch, type TaskRoom } from '../coordinator/tasks/room.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';

let room: TaskRoom;
let folder: TestFolder;
let executions: Executions;
let now = 0;
const clock: Clock = { ...systemClock, now: () => systemClock.now() + now };
beforeAll(async () => {
  room = await aTaskRoom();
  folder = testFolder();
  executions = new Executions({
    store: room.tasks.store,
    files: folderFiles({ dir: folder.path, host: 'here' }),
    limits: () => ({ inlineBytes: 100, maxBytes: 10_000, keepMs: 60_000 }),
    clock,
  });
});
afterAll(async () => {
  await room[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});
beforeEach(async () => {
  await room.reset();
  now = 0;
});
afterEach(() => expectSound(room));

/** A task in Ann's hands. */
async function begun(more: Partial<Sketch> = {}) {
  await room.add({ task_id: 'T', rollback_strategy: 'automatic', ...more });
  return claimed('ann');
}

async function claimed(agent: string) {
  const outcome = await room.tasks.work.claim({ agent, task: 'T' });
  if (outcome.outcome !== 'claimed') throw new Error(`${agent}: ${JSON.stringify(outcome)}`);
  return leaseOf(outcome.lease);
}
const leaseOf = ({ agent_id: agent, lock_id: lockId, fencing_token: token }: Lease) => ({
  task: 'T',
  agent,
  lockId,
  token,
});
const whole = { offset: 0, length: 1_000_000 };
const stashed = async () => (await executions.readStash('T', whole))?.bytes.toString();
const events = async () => {
  const entries = await room.client.xrange(room.keys.events('task'), '-', '+');
  return entries.map(([, fields]) => fields[1]);
};

test('a short stash is kept beside the execution, with the lease it was saved under', async () => {
  const lease = await begun();
  expect(await executions.stash(lease, Buffer.from('{"version":41}'), './undo.sh')).toMatchObject({ outcome: 'kept' });
  expect(await executions.show('T')).toMatchObject({
    stash: '{"version":41}',
    stash_token: lease.token,
    stash_by: 'ann',
    stash_command: './undo.sh',
    stash_bytes: 14,
  });
  expect(await events()).toContain('task:stashed');
  expect(await executions.stash(lease, Buffer.from('{"version":41}'))).toMatchObject({ outcome: 'same' });
});

test('a long one, and one that is no text, comes back to the byte', async () => {
  const lease = await begun();
  const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, at) => at % 256));
  await executions.stash(lease, bytes);
  const { stash_key, stash } = await executions.show('T');
  expect(stash).toBeUndefined();
  expect(existsSync(join(folder.path, stash_key!))).toBe(true);
  expect((await executions.readStash('T', whole))?.bytes.equals(bytes)).toBe(true);
  expect((await executions.readStash('T', { offset: 4_990, length: 100 }))?.bytes.length).toBe(10);
});

test('one that is too long is refused, and whoever lost the task saves nothing', async () => {
  const lease = await begun();
  await expect(executions.stash(lease, Buffer.alloc(10_001))).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
  const other = { ...lease, token: '1' };
  expect(await executions.stash(other, Buffer.alloc(500, 'x'))).toMatchObject({ outcome: 'late', holder: 'ann' });
  expect(await executions.output(other, Buffer.alloc(500, 'x'))).toMatchObject({ outcome: 'late' });
  expect(await room.client.zcard(room.keys.fileExpiry())).toBe(0);
  expect(await executions.show('T')).not.toHaveProperty('stash_at');
});

test('what a broken attempt left is not saved over what undoes it', async () => {
  const first = await begun();
  await executions.stash(first, Buffer.from('before'));
  expect(await executions.stash(first, Buffer.from('in between'))).toMatchObject({ outcome: 'stands' });
  await room.tasks.work.fail(first, { error: 'its worker died', class: 'lost' });
  expect(await executions.show('T')).toMatchObject({ rollback: 'owed', error_details: { class: 'lost', attempt: 1 } });

  const second = await claimed('bob');
  expect(await executions.stash(second, Buffer.from('ruins'))).toMatchObject({ outcome: 'stands', by: 'ann' });
  expect(await stashed()).toBe('before');
  const done = { outcome: 'done', reason: '', isPerson: false } as const;
  expect(await executions.rolledBack(second, done)).toMatchObject({ outcome: 'noted' });
  expect(await executions.stash(second, Buffer.from('before again'))).toMatchObject({ outcome: 'kept' });
  expect(await stashed()).toBe('before again');
  expect(await executions.show('T')).not.toHaveProperty('rollback');
});

test('after a success, and where nothing is to be undone, the next attempt saves its own', async () => {
  const first = await begun();
  await executions.stash(first, Buffer.from('one'));
  await room.tasks.work.complete(first);
  await room.tasks.reopen('T', 'again', 'ann');
  expect(await executions.stash(await claimed('bob'), Buffer.from('two'))).toMatchObject({ outcome: 'kept' });
});

test.each([
  ['manual', undefined],
  ['automatic', 'manual'],
  ['automatic', 'failed'],
] as const)('with %s and a rollback %s, it waits for a person before it is tried again', async (strategy, said) => {
  const lease = await begun({ rollback_strategy: strategy });
  await executions.stash(lease, Buffer.from('before'));
  if (said) await executions.rolledBack(lease, { outcome: said, reason: 'no way', isPerson: false });
  await room.tasks.work.fail(lease, { error: 'broken', class: 'infra' });
  room.shift(60_000);
  expect(await room.tasks.work.claim({ agent: 'bob' })).toMatchObject({ outcome: 'none' });
  expect(await executions.show('T')).toMatchObject({ rollback: said ?? 'manual' });

  const by = { task: 'T', agent: 'ada' };
  const failed = { outcome: 'failed', reason: 'disk full', isPerson: true } as const;
  expect(await executions.rolledBack(by, failed)).toMatchObject({ outcome: 'noted', status: 'blocked' });
  expect(await room.status('T')).toBe('blocked');
  await executions.rolledBack(by, { outcome: 'done', reason: 'by hand', isPerson: true });
  expect(await executions.show('T')).toMatchObject({
    rollback: 'done',
    rollback_by: 'ada',
    rollback_reason: 'by hand',
  });
  await room.tasks.reopen('T', 'now', 'ada');
  expect(await claimed('bob')).toMatchObject({ agent: 'bob' });
});

test('a task that was given up keeps what undoes it; tried again, it still waits for that', async () => {
  const lease = await begun({ rollback_strategy: 'manual' });
  await executions.stash(lease, Buffer.from('before'));
  await room.tasks.work.fail(lease, { error: 'broken', isFinal: true });
  expect(await executions.show('T')).toMatchObject({ result: 'failure', rollback: 'manual' });
  await room.tasks.reopen('T', 'again', 'ada');
  expect(await room.status('T')).toBe('blocked');
  await executions.rolledBack({ task: 'T', agent: 'ada' }, { outcome: 'done', reason: '', isPerson: true });
  expect(await room.status('T')).toBe('pending');
});

test('with none, nothing is owed', async () => {
  const lease = await begun({ rollback_strategy: 'none' });
  await executions.stash(lease, Buffer.from('before'));
  await room.tasks.work.drop(lease, 'not now');
  expect(await executions.show('T')).not.toHaveProperty('rollback');
  expect(await room.status('T')).toBe('pending');
});

test('a person can undo only what was saved, and what nobody works on', async () => {
  const lease = await begun();
  const done = { outcome: 'done', reason: '', isPerson: true } as const;
  const by = { task: 'T', agent: 'ada' };
  expect(await executions.rolledBack(by, done)).toEqual({ outcome: 'running', agent: 'ann' });
  await room.tasks.work.drop(lease, 'not now');
  expect(await executions.rolledBack(by, done)).toEqual({ outcome: 'nothing' });
  expect(await executions.rolledBack({ ...by, task: 'X' }, done)).toEqual({ outcome: 'unknown' });
});

test('a short output is kept as it is; of a long one the ends, and all of it in a file', async () => {
  const lease = await begun();
  await executions.output(lease, Buffer.from('done\n'));
  expect(await executions.show('T')).toMatchObject({ output: 'done\n', output_bytes: 5 });
  const long = Buffer.from(`begin ${'ä'.repeat(400)} end`);
  expect(await executions.output(lease, long)).toMatchObject({ outcome: 'kept', key: expect.any(String) });
  const { output, output_key, output_store } = await executions.show('T');
  expect(output).toMatch(/^begin ä+\n\[… \d+ bytes left out: reeve task output T …\]\nä+ end$/);
  expect({ output_key, output_store }).toEqual({
    output_key: expect.stringMatching(/^outputs\/T\//),
    output_store: 'file:here',
  });
  expect((await executions.readOutput('T', whole))?.bytes.equals(long)).toBe(true);
  expect(await executions.output(lease, Buffer.from('less'), { isWeak: true })).toEqual({ outcome: 'has' });
});

test('files are thrown away when their time is over, not before', async () => {
  const lease = await begun();
  await executions.output(lease, Buffer.alloc(500, 'x'));
  expect(await executions.sweepOnce()).toBe(0);
  now = 61_000;
  expect(await executions.sweepOnce()).toBe(1);
  await expect(executions.readOutput('T', whole)).rejects.toMatchObject({ code: 'FILE_GONE' });
  expect(await room.client.zcard(room.keys.fileExpiry())).toBe(0);
});

test('files of another place are left to those who have it', async () => {
  await room.client.zadd(room.keys.fileExpiry(), 1, 'file:elsewhere outputs/T/1');
  expect(await executions.sweepOnce()).toBe(0);
  expect(await room.client.zcard(room.keys.fileExpiry())).toBe(1);
});
