import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../src/identity/caller.ts';
import { type Role, rightsOf } from '../../src/identity/permissions.ts';
import { operations } from '../../src/operations/index.ts';
import { invoke } from '../../src/operations/operation.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { noStrayKeys, type TestRooms, targetOf, theRooms } from '../support/rooms.ts';

let redis: TestRedis;
let rooms: TestRooms;
beforeAll(async () => {
  redis = await startTestRedis();
});
beforeEach(async () => {
  rooms = await theRooms(targetOf(redis.options));
  await rooms.users.add({ id: 'ann', roles: ['author'] });
  await rooms.users.add({ id: 'rob', roles: ['reviewer'] });
});
afterEach(async () => {
  await noStrayKeys(redis.client());
  await redis.flush();
});
afterAll(() => redis.stop());

const as = (id: string, ...roles: Role[]): Caller => ({ id, roles, ...rightsOf(roles) });
const [ann, rob, local] = [as('ann', 'author'), as('rob', 'reviewer'), as('local', 'admin')];
async function ask<T = Record<string, unknown>>(name: string, input: unknown, caller: Caller = ann): Promise<T> {
  const operation = operations.find((one) => one.name === name)!;
  return (await invoke(operation, { rooms, caller, operations, signal: new AbortController().signal }, input)) as T;
}
const refusal = (code: string) => expect.objectContaining({ code });

async function forgotten(task: string): Promise<void> {
  const { keys } = rooms.tasks.store;
  await redis.client().del(keys.taskState(task), keys.taskData(task), keys.taskConfig(task), keys.taskMetadata(task));
}

interface Asked {
  readonly approval_id: string;
  readonly reviewer_id: string;
}

/** Written, submitted, approved by Rob, done. */
async function completed(task: string): Promise<void> {
  await ask('task.add', { task, title: 'Paint it', parameters: { colour: 'red' } });
  await ask('task.submit', { task });
  const { items } = await ask<{ items: Asked[] }>('approval.list', { task });
  await ask('approval.approve', { approval: items.find(({ reviewer_id }) => reviewer_id === 'rob')!.approval_id }, rob);
  await rooms.tasks.judge(task, { to: 'completed' }, 'ann');
}

test('what Redis has forgotten is listed and shown, with who agreed to it', async () => {
  await completed('T-1');
  await ask('task.archive_now', { after_days: 0 }, local);
  await forgotten('T-1');
  await expect(ask('task.show', { task: 'T-1' })).rejects.toThrow(refusal('TASK_UNKNOWN'));
  expect(await ask('task.list', {})).toMatchObject({ items: [] });
  expect(await ask('task.archive', {})).toMatchObject({
    items: [{ task_id: 'T-1', state: 'COMPLETED', author: 'ann' }],
  });
  expect(await ask('task.archived', { task: 'T-1' })).toMatchObject({
    title: 'Paint it',
    document: {
      requests: expect.arrayContaining([expect.objectContaining({ reviewer_id: 'rob', status: 'APPROVED' })]),
      votes: { rob: {} },
    },
  });
});

test('what is archived by hand is what ended as long ago as was said', async () => {
  await completed('T-1');
  const counts = { archived: 0, unlisted: 0, lost: 0 };
  expect(await ask('task.archive_now', {}, local)).toEqual(counts);
  expect(await ask('task.archive_now', { after_days: 0 }, local)).toEqual({ ...counts, archived: 1 });
  expect(await ask('task.archive_now', { after_days: 0 }, local)).toEqual(counts);
});

test('what is restored is a new draft that has to pass the gate', async () => {
  await completed('T-1');
  await ask('task.archive_now', { after_days: 0 }, local);
  await forgotten('T-1');
  const restored = await ask<{ task_id: string }>('task.restore', { task: 'T-1' });
  expect(restored).toEqual({ task_id: 'T-1.r2', status: 'blocked', supersedes: 'T-1' });
  expect(await ask('task.show', { task: 'T-1.r2' })).toMatchObject({
    state: 'DRAFT',
    title: 'Paint it',
  });
  const [written] = (await rooms.tasks.views.tasks(['T-1.r2'])).values();
  expect(written).toMatchObject({ parameters: { colour: 'red' }, supersedes: 'T-1', origin: 'api' });
  expect(await ask('task.submit', { task: 'T-1.r2' })).toMatchObject({ state: 'REVIEWING' });
  expect(await ask('task.restore', { task: 'T-1' })).toMatchObject({ task_id: 'T-1.r3' });
});

test('what is not there is said, and who may not write may not restore', async () => {
  await completed('T-1');
  await expect(ask('task.archived', { task: 'T-1' })).rejects.toThrow(refusal('ARCHIVED_TASK_UNKNOWN'));
  await expect(ask('task.restore', { task: 'T-1' })).rejects.toThrow(refusal('ARCHIVED_TASK_UNKNOWN'));
  await ask('task.archive_now', { after_days: 0 }, local);
  await expect(ask('task.restore', { task: 'T-1' }, rob)).rejects.toThrow(refusal('DENIED'));
});
