import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Hold } from '../../src/hold.ts';
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
  await rooms.users.add({ id: 'mona', roles: ['reviewer'] });
  await rooms.users.add({ id: 'rob', roles: ['reviewer'], manager: 'mona' });
});
afterEach(async () => {
  await noStrayKeys(redis.client());
  await redis.flush();
});
afterAll(() => redis.stop());

const as = (id: string, ...roles: Role[]): Caller => ({ id, roles, ...rightsOf(roles) });
const ann = as('ann', 'author');
const rob = as('rob', 'reviewer');
const local = as('local', 'admin');
async function ask<T = Record<string, unknown>>(name: string, input: unknown, caller: Caller): Promise<T> {
  const operation = operations.find((one) => one.name === name)!;
  return (await invoke(operation, { rooms, caller, operations, signal: new AbortController().signal }, input)) as T;
}
const code = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'answered',
    (error: { code: string }) => error.code,
  );
const submit = async (task: string, more = {}) => {
  await ask('task.add', { task, title: task, ...more }, ann);
  return ask<{ state: string }>('task.submit', { task }, ann);
};
const requestOf = async (task: string, reviewer: string) =>
  (await ask<{ items: { approval_id: string; reviewer_id: string }[] }>('approval.list', { task }, ann)).items.find(
    ({ reviewer_id }) => reviewer_id === reviewer,
  )!.approval_id;

describe('flags change what happens at once', () => {
  test('auto_approve_low_risk', async () => {
    await ask('policy.set', { policy: 'low', auto_approve_if: { risk_below: 90 } }, local);
    expect(await submit('T-1')).toMatchObject({ state: 'APPROVED' });
    await ask('flag.set', { name: 'auto_approve_low_risk', value: 'disabled' }, local);
    expect(await submit('T-2')).toMatchObject({ state: 'REVIEWING' });
    await ask('flag.set', { name: 'auto_approve_low_risk', value: 'enabled' }, local);
    expect(await submit('T-3')).toMatchObject({ state: 'APPROVED' });
  });

  test('batch_approvals', async () => {
    await submit('T-1');
    const batch = async () => ask('approval.batch', { approval_ids: [await requestOf('T-1', 'rob')] }, rob);
    await ask('flag.set', { name: 'batch_approvals', value: 'disabled' }, local);
    expect(await code(batch())).toBe('FEATURE_OFF');
    await ask('flag.set', { name: 'batch_approvals', value: 'enabled' }, local);
    expect(await batch()).toMatchObject({ done: true });
  });
});

test('why proposes to answer only to who is asked, and to call it off only to who may', async () => {
  await submit('T-1');
  const actionsFor = async (caller: Caller) => {
    const { holds, next } = await ask<{ holds: Hold[]; next: string }>('why.explain', { ref: 'T-1' }, caller);
    return { next, refused: holds[0]!.actions.filter(({ allowed }) => !allowed) };
  };
  const approval = await requestOf('T-1', 'rob');
  const asked = await actionsFor(rob);
  expect(asked.next).toBe(`reeve approval approve ${approval}`);
  const refused = asked.refused.map(({ command }) => command);
  expect(refused).toContain('reeve task cancel T-1');
  expect(refused).not.toContain(asked.next);
  const other = await actionsFor(ann);
  expect(other.next).toMatch(/^reeve approval show T-1/);
  expect(other.refused).toContainEqual(expect.objectContaining({ label: 'As rob', why_not: 'rob is asked, not ann' }));
});

test('the time to answer follows the live settings, and the wish of whoever submits', async () => {
  const dueIn = async (task: string, wish = {}) => {
    await ask('task.add', { task, title: task }, ann);
    await ask('task.submit', { task, ...wish }, ann);
    const approval = await requestOf(task, 'rob');
    const { created_at, due_at } = await ask<Record<string, string>>('approval.show', { approval }, rob);
    return Math.round((Date.parse(due_at!) - Date.parse(created_at!)) / 1000);
  };
  expect(await dueIn('T-1')).toBe(48 * 3_600);
  await ask('config.set', { name: 'approval:default_timeout', value: 600 }, local);
  expect(await dueIn('T-2')).toBe(600);
  await ask('config.set', { name: 'approval:max_timeout', value: 300 }, local);
  expect(await dueIn('T-3')).toBe(300);
  expect(await dueIn('T-4', { due_seconds: 60 })).toBe(60);
  expect(await dueIn('T-5', { due_seconds: 6_000 })).toBe(300);
  expect(await code(ask('config.set', { name: 'approval:reminders', value: '0.5' }, local))).toBe('INVALID_INPUT');
});

test('a batch’s options are for admins, and hurrying is for what passes', async () => {
  await submit('T-1');
  const approval_ids = [await requestOf('T-1', 'rob')];
  for (const options of [{ skip_validation: true }, { apply_immediately: true }]) {
    expect(await code(ask('approval.batch', { approval_ids, options }, rob))).toBe('DENIED');
  }
  const reject = { approval_ids, action: 'reject', reason: 'no', options: { apply_immediately: true } };
  expect(await code(ask('approval.batch', reject, local))).toBe('INVALID_INPUT');
  expect(await code(ask('approval.batch', { approval_ids: [] }, rob))).toBe('INVALID_INPUT');
  expect(await code(ask('approval.batch', { approval_ids: [...approval_ids, ...approval_ids] }, rob))).toBe(
    'INVALID_INPUT',
  );
  const many = Array.from({ length: 10_001 }, (_, at) => `T-1.${at}`);
  expect(await code(ask('approval.batch', { approval_ids: many }, rob))).toBe('INVALID_INPUT');
});

test('lists tell what is overdue and what was escalated, and why tells who is asked, until when, and what then', async () => {
  await submit('T-1');
  await submit('T-2');
  const list = async (input: object) =>
    (await ask<{ items: { approval_id: string }[] }>('approval.list', { reviewer: 'rob', ...input }, rob)).items;
  expect(await list({})).toHaveLength(2);
  expect(await list({ overdue: true })).toEqual([]);
  expect(await list({ due_before: '2100-01-01T00:00:00Z' })).toHaveLength(2);
  expect(await list({ escalated: true })).toEqual([]);
  const approval = await requestOf('T-1', 'rob');
  const past = new Date(Date.now() - 1_000).toISOString();
  await rooms.connection.commands.hset(rooms.tasks.store.keys.approvalRequest(approval), 'due_at', past);
  expect((await list({ overdue: true, limit: 1 })).map(({ approval_id }) => approval_id)).toEqual([approval]);

  const { says } = await ask<{ says: string }>('why.explain', { ref: 'T-2' }, ann);
  expect(says).toMatch(/has until .*; then .* nobody is on call/);
  await ask('config.set', { name: 'approval:on_call', value: 'pager' }, local);
  expect((await ask<{ says: string }>('why.explain', { ref: 'T-2' }, ann)).says).toContain('pager is told');
  expect(await ask('approval.show', { approval }, rob)).toMatchObject({
    if_unanswered: expect.stringContaining('pager'),
  });
});

test('how a reviewer is doing can be asked', async () => {
  await submit('T-1');
  await ask('approval.approve', { approval: await requestOf('T-1', 'rob') }, rob);
  expect(await ask('approval.stats', { days: 1 }, rob)).toMatchObject({
    reviewer_id: 'rob',
    pending_count: 0,
    approved_today: 1,
    days: [{ approved: 1, rejected: 0 }],
  });
});

describe('a user who changes', () => {
  const claim = () => rooms.tasks.work.claim({ agent: 'ag-1' });
  const approved = async () => {
    await submit('T-1');
    expect(await ask('approval.approve', { approval: await requestOf('T-1', 'rob') }, rob)).toMatchObject({
      task_state: 'APPROVED',
    });
  };

  test('and was removed has no vote in what is handed out afterwards', async () => {
    await approved();
    await rooms.users.remove('rob');
    expect(await claim()).toMatchObject({ outcome: 'none' });
  });

  test('and lost a role neither, but keeps the vote when the change fails or concerns something else', async () => {
    await approved();
    await rooms.users.set('rob', { name: 'Robert', roles: ['reviewer', 'author'] });
    await expect(rooms.users.set('rob', { roles: ['author'], manager: 'nobody' })).rejects.toMatchObject({
      code: 'USER_UNKNOWN',
    });
    expect(await claim()).toMatchObject({ outcome: 'claimed' });
    await submit('T-2');
    await ask('approval.approve', { approval: await requestOf('T-2', 'rob') }, rob);
    await rooms.users.set('rob', { roles: ['author'] });
    expect(await rooms.tasks.work.claim({ agent: 'ag-2' })).toMatchObject({ outcome: 'none' });
  });
});

describe('bad input', () => {
  const NASTY = [
    '',
    'a b',
    'a:b',
    '{a}',
    'a\r\nb',
    'a\0b',
    '*',
    '..',
    'x'.repeat(10_000),
    '😀',
    '__proto__',
    'constructor',
    "'] redis.call('FLUSHALL",
  ];
  test.each([
    ['approval.show', (id: string) => ({ approval: id })],
    ['approval.approve', (id: string) => ({ approval: id })],
    ['approval.delegate', (id: string) => ({ approval: 'T-1.1', to: id })],
    ['approval.batch', (id: string) => ({ approval_ids: [id] })],
    ['approval.stats', (id: string) => ({ reviewer: id })],
    ['approval.list', (id: string) => ({ reviewer: id })],
    ['delegation.set', (id: string) => ({ delegation: id, delegate_to: 'rob' })],
    ['delegation.set', (id: string) => ({ delegation: 'd', delegate_to: id })],
    ['policy.set', (id: string) => ({ policy: id })],
    ['task.override', (id: string) => ({ task: id, policy: 'p', reason: 'r', ticket: 't' })],
    ['task.override', (id: string) => ({ task: 'T-1', policy: id, reason: 'r', ticket: 't' })],
    ['task.submit', (id: string) => ({ task: id })],
    ['task.comment', (id: string) => ({ task: id, text: 'x' })],
  ])('%s refuses ids that are none before it asks Redis', async (name, input) => {
    const before = await rooms.connection.commands.dbsize();
    for (const id of NASTY) expect([id, await code(ask(name, input(id), local))]).toEqual([id, 'INVALID_INPUT']);
    expect(await rooms.connection.commands.dbsize()).toBe(before);
  });

  test('reserved words are no ids of users, policies and tasks', async () => {
    expect(await code(ask('task.add', { task: '123:queue', title: 'x' }, ann))).toBe('INVALID_INPUT');
    expect(await code(ask('delegation.set', { delegation: 'd', owner: 'index', delegate_to: 'rob' }, local))).toBe(
      'INVALID_INPUT',
    );
  });

  test.each([
    ['a megabyte', 'x'.repeat(1_000_000)],
    ['deep JSON', { nested: 'no' }],
  ])('a reason that is %s is refused', async (_, reason) => {
    await submit('T-1');
    const approval = await requestOf('T-1', 'rob');
    expect(await code(ask('approval.reject', { approval, reason }, rob))).toBe('INVALID_INPUT');
  });

  test('what people write is kept as it is: markup, control characters, quotes, lone surrogates', async () => {
    await submit('T-1');
    const text = '<b onload=alert(1)>\u001b[31m "\\ \n{"a":1} \ud800';
    await ask('task.comment', { task: 'T-1', text }, ann);
    const approval = await requestOf('T-1', 'rob');
    await ask('approval.reject', { approval, reason: text }, rob);
    const shown = await ask<{ response_reason: string; comments: { text: string }[] }>(
      'approval.show',
      { approval },
      rob,
    );
    expect([shown.response_reason, shown.comments[0]?.text]).toEqual([text.toWellFormed(), text.toWellFormed()]);
  });

  test('numbers beyond the scale are refused', async () => {
    for (const risk_threshold of [-1, 100.4, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(await code(ask('policy.set', { policy: 'p', risk_threshold }, local))).toBe('INVALID_INPUT');
    }
    for (const min_approvers of [0, -1, 1.5, 51, 2 ** 53 + 1]) {
      expect(await code(ask('policy.set', { policy: 'p', min_approvers }, local))).toBe('INVALID_INPUT');
    }
  });

  test('roles come from the server, not from what a caller sends', async () => {
    await submit('T-1');
    const approval = await requestOf('T-1', 'rob');
    expect(await code(ask('approval.approve', { approval, by: 'rob', roles: ['admin'] }, ann))).toBe('DENIED');
    expect(await code(ask('approval.approve', { approval, roles: ['admin'] }, rob))).toBe('INVALID_INPUT');
  });
});
