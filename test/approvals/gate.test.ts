import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { reset } from '../../src/coordinator/tasks/reset.ts';
import { parseId } from '../../src/redis/ids.ts';
import { expectSound } from '../coordinator/tasks/room.ts';
import { type ApprovalRoom, anApprovalRoom, policy, USUAL_PEOPLE, usualTerms } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
});
beforeEach(async () => {
  Object.assign(room.terms, usualTerms());
  await room.people(...USUAL_PEOPLE);
});
afterEach(async () => {
  await expectSound(room);
  await room.reset();
});
afterAll(() => room[Symbol.asyncDispose]());

const claim = (agent = 'ag-1') => room.tasks.work.claim({ agent });
const edit = (task: string, description: string, editor = 'ann') =>
  room.tasks.amend([{ task_id: parseId('task', task), set: { description }, editor }]);
const DATABASE = [{ type: parseId('resourceType', 'database'), id: 'main', mode: 'exclusive' as const }];
const PROD = [{ ...DATABASE[0]!, id: 'prod' }];

describe('a task of the API', () => {
  test('is a draft until it is submitted, asks one person where no policy is about it, and is handed out once that person agreed', async () => {
    await room.draft('T-1');
    expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['DRAFT', 'blocked']);
    const ruling = await room.approvals.submit('T-1', 'ann');
    expect(ruling).toMatchObject({ state: 'REVIEWING', because: expect.stringContaining('one person') });
    expect(ruling.requests.map(({ reviewer }) => reviewer).sort()).toEqual(['ada', 'dan', 'dora', 'rita', 'rob']);
    expect(await room.status('T-1')).toBe('blocked');
    expect(await claim()).toMatchObject({ outcome: 'none' });

    expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
    expect(await room.status('T-1')).toBe('pending');
    expect(await claim()).toMatchObject({ outcome: 'claimed', task: { task_id: 'T-1' } });
    expect(await room.state('T-1')).toBe('APPLYING');
  });

  test('passes at once if every policy that is about it lets it, and not if one does not', async () => {
    room.terms.policies = [policy({ policy_id: 'low', auto_approve_if: { risk_below: 90 } })];
    await room.draft('T-1');
    expect(await room.approvals.submit('T-1', 'ann')).toMatchObject({ state: 'APPROVED', requests: [] });
    expect(await room.status('T-1')).toBe('pending');
    room.terms.policies = [...room.terms.policies, policy({ policy_id: 'strict', task_types: ['task'] })];
    await room.draft('T-2');
    expect(await room.approvals.submit('T-2', 'ann')).toMatchObject({ state: 'REVIEWING' });
  });

  test('asks for the quorum of each policy, in different people, with every role that is asked for', async () => {
    room.terms.policies = [
      policy({ policy_id: 'two', min_approvers: 2 }),
      policy({ policy_id: 'data', required_roles: ['dba'], resource_patterns: ['database:*'] }),
    ];
    await room.draft({ task_id: 'T-1', resources: DATABASE });
    await room.approvals.submit('T-1', 'ann');
    expect(await room.approve('T-1', 'rob')).toBe('REVIEWING');
    expect(await room.approve('T-1', 'rita')).toBe('REVIEWING');
    expect(await room.approve('T-1', 'dora')).toBe('APPROVED');
    const open = (await room.approvals.desk.about('T-1')).filter(({ status }) => status === 'PENDING');
    expect(open).toEqual([]);
  });
});

test('whoever submits it for another is not asked about it, and if nobody else is there it is refused', async () => {
  await room.draft('T-1');
  const { requests } = await room.approvals.submit('T-1', 'ada');
  expect(requests.map(({ reviewer }) => reviewer)).not.toContain('ada');
  room.terms.policies = [policy({ policy_id: 'admins', required_roles: ['admin'] })];
  await room.draft('T-2');
  await expect(room.approvals.submit('T-2', 'ada')).rejects.toMatchObject({ code: 'NOBODY_TO_ASK' });
});

test('an edit voids the votes, and what was agreed to is not what is handed out any more', async () => {
  room.terms.policies = [policy({ policy_id: 'two', min_approvers: 2 })];
  await room.draft('T-1');
  await room.approvals.submit('T-1', 'ann');
  await room.approve('T-1', 'rob');
  const before = await room.requestOf('T-1', 'rita');
  await edit('T-1', 'more');
  expect(await room.state('T-1')).toBe('REVIEWING');
  expect(await room.approvals.desk.tally('T-1')).toMatchObject({ approved_count: 0, pending_count: 5 });
  const [late] = await room.approvals.answer('rita', [{ approval: before, action: 'approve', reason: '' }]);
  expect(late).toMatchObject({ error: { code: 'APPROVAL_SETTLED' } });
  await room.approve('T-1', 'rob');
  expect(await room.approve('T-1', 'rita')).toBe('APPROVED');
  await edit('T-1', 'even more');
  expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['REVIEWING', 'blocked']);
});

describe('a task of the file', () => {
  test('passes at once below the threshold, and waits for a person above it, where a policy asks, or with the flag off', async () => {
    await room.add({ task_id: 'T-1', origin: 'prd' }, { task_id: 'T-2', origin: 'prd', resources: PROD });
    expect([await room.state('T-1'), await room.state('T-2')]).toEqual(['APPROVED', 'REVIEWING']);
    expect(await room.client.hget(room.keys.taskRisk('T-1'), 'auto_approvable')).toBe('true');
    room.terms.policies = [policy({ policy_id: 'docs', task_types: ['docs'] })];
    await room.add({ task_id: 'T-3', origin: 'prd', category: 'docs' });
    expect(await room.state('T-3')).toBe('REVIEWING');
    room.terms.isUnaskedAllowed = false;
    await room.add({ task_id: 'T-4', origin: 'prd' });
    expect(await room.state('T-4')).toBe('REVIEWING');
    expect(await room.approve('T-2', 'rob')).toBe('APPROVED');
    expect(await room.status('T-2')).toBe('pending');
  });

  test('that nobody can agree to waits, and is asked for once somebody can', async () => {
    room.terms.policies = [policy({ policy_id: 'legal', required_roles: ['legal'] })];
    await room.add({ task_id: 'T-1', origin: 'prd' });
    expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['SUBMITTED', 'blocked']);
    await room.people({ id: 'lea', roles: ['legal'] });
    expect(await room.approvals.askLeftOnce()).toBe(1);
    expect(await room.approve('T-1', 'lea')).toBe('APPROVED');
    await room.people({ id: 'lea', roles: ['legal'], isActive: false });
  });
});

test('a policy has a new version with each change, and each change its row for the audit', async () => {
  const first = policy({ policy_id: 'p', min_approvers: 2 });
  expect(await room.policies.set(first, 'ada')).toMatchObject({ version: 1 });
  expect(await room.policies.set(first, 'ada')).toMatchObject({ version: 1 });
  expect(await room.policies.set({ ...first, min_approvers: 3 }, 'ada')).toMatchObject({ version: 2 });
  await room.policies.remove('p', 'ada');
  expect(await room.policies.inForce()).toEqual([]);
  expect((await room.policies.history('p')).map(({ version, active }) => [version, active])).toEqual([
    [1, true],
    [2, true],
    [3, false],
  ]);
  const rows = await room.store.db.selectFrom('audit_intake').select('body').execute();
  expect(rows.filter(({ body }) => body.includes('policy:p'))).toHaveLength(3);
});

test('what people agreed to is forgotten with its task: the same written again is asked for anew', async () => {
  await room.draft('T-1');
  await room.approvals.submit('T-1', 'ann');
  expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
  await reset(room.tasks, 'all');
  expect(await room.client.keys('ade:approval:*T-1*')).toEqual([]);
  await room.draft('T-1');
  expect(await room.approvals.submit('T-1', 'ann')).toMatchObject({ state: 'REVIEWING' });
  expect(await room.approvals.desk.tally('T-1')).toMatchObject({ approved_count: 0 });
  expect(await claim()).toMatchObject({ outcome: 'none' });
});
