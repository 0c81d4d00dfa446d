import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { NewDelegation } from '../../src/approvals/delegation-store.ts';
import { parseId } from '../../src/redis/ids.ts';
import { expectSound } from '../coordinator/tasks/room.ts';
import { type ApprovalRoom, anApprovalRoom, policy, USUAL_PEOPLE, usualTerms } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
});
beforeEach(async () => {
  Object.assign(room.terms, usualTerms());
  room.terms.policies = [policy({ policy_id: 'two', min_approvers: 2 })];
  await room.people(...USUAL_PEOPLE);
});
afterEach(async () => {
  await expectSound(room);
  await room.store.db.deleteFrom('delegations').execute();
  await room.reset();
});
afterAll(() => room[Symbol.asyncDispose]());

const follow = (owner_id: string, delegate_to: string, more: Partial<NewDelegation> = {}) =>
  room.delegations.add({
    ...{ owner_id, delegate_to, policy_id: `with-${delegate_to}`, kind: 'follow', conditions: {}, cascade: true },
    ...{ by: owner_id, ...more },
  });
async function reviewed(task = 'T-1', author = 'ann'): Promise<void> {
  await room.draft(task, author);
  await room.approvals.submit(task, author);
}
const questionOf = async (reviewer: string, task = 'T-1') =>
  (await room.approvals.desk.about(task)).findLast(({ reviewer_id }) => reviewer_id === reviewer)!;
const statusOf = async (reviewer: string) => (await questionOf(reviewer)).status;
const tally = () => room.approvals.desk.tally('T-1');
const field = (fields: readonly string[], name: string) => fields[fields.indexOf(name) + 1] ?? '';

test('every word about who answers for whom, or follows whom, is audited, and one that failed is not', async () => {
  await room.store.db.deleteFrom('audit_intake').execute();
  await follow('rob', 'rita');
  await room.delegations.remove('rob', 'with-rita');
  await expect(room.delegations.remove('rob', 'with-rita')).rejects.toMatchObject({ code: 'DELEGATION_UNKNOWN' });
  const rows = await room.store.db.selectFrom('audit_intake').select('body').orderBy('id').execute();
  expect(rows.map(({ body }) => JSON.parse(body))).toEqual([
    expect.objectContaining({
      action: 'delegation.set',
      subject: 'delegation:rob:with-rita',
      detail: { delegation: expect.objectContaining({ kind: 'follow', delegate_to: 'rita' }) },
    }),
    expect.objectContaining({ action: 'delegation.remove', subject: 'delegation:rob:with-rita' }),
  ]);
});

describe('who follows somebody', () => {
  test('has answered once that person approves: it can be seen, is told and audited, and counts for nothing', async () => {
    await follow('rob', 'rita');
    await reviewed();
    const { approval_id: rita } = await questionOf('rita');
    expect(await room.approve('T-1', 'rita')).toBe('REVIEWING');
    const implied = await questionOf('rob');
    expect(implied).toMatchObject({
      status: 'APPROVED',
      follows: rita,
      reviewed_by: 'rita',
      response_action: 'approve',
    });
    expect((await room.approvals.desk.inbox('rob', 10)).items).toEqual([]);
    expect(await tally()).toMatchObject({ approved_count: 1, pending_count: 3, quorum_reached: false });

    const events = await room.client.xrange(room.keys.events('approval'), '-', '+');
    const told = events.filter(([, fields]) => fields.includes('approval:resolved'));
    expect(told.map(([, fields]) => JSON.parse(field(fields, 'payload')))).toEqual([
      expect.objectContaining({ approval_id: implied.approval_id, reviewer: 'rob', by: 'rita', follows: rita }),
    ]);
    const rows = await room.client.xrange(room.keys.auditOutbox(), '-', '+');
    const audited = rows.filter(([, fields]) => field(fields, 'action') === 'follow');
    expect(audited.map(([, fields]) => field(fields, 'subject'))).toEqual([`approval:${implied.approval_id}`]);

    expect(await room.approve('T-1', 'dan')).toBe('APPROVED');
  });

  test('is the only one it holds for: a refusal is not implied, nor is what was passed on to them', async () => {
    await follow('rob', 'rita');
    await room.delegations.add({
      ...{ owner_id: 'dan', delegate_to: 'rob', policy_id: 'leave', kind: 'instead', conditions: {}, cascade: true },
      ...{ by: 'dan', conditions: { risk_above: 0 } },
    });
    await room.people({ id: 'rob', roles: ['author'] });
    await reviewed();
    expect(await questionOf('rob')).toMatchObject({ delegation_chain: ['dan', 'rob'] });
    await room.approve('T-1', 'rita');
    expect(await statusOf('rob')).toBe('PENDING');

    const { approval_id: approval } = await questionOf('ada');
    await follow('dora', 'ada');
    await room.approvals.answer('ada', [{ approval, action: 'reject', reason: 'no' }]);
    expect(await questionOf('dora')).not.toHaveProperty('follows');
    expect(await room.state('T-1')).toBe('REJECTED');
  });

  test('still has a say where the quorum needs it', async () => {
    await room.people(...['ada', 'dan', 'dora'].map((id) => ({ id, roles: ['author'] })));
    await follow('rob', 'rita');
    await reviewed();
    await room.approve('T-1', 'rita');
    expect(await statusOf('rob')).toBe('PENDING');
    expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
  });

  test('of several only as many are let go as can be spared, and the rest is not let go by other ways either', async () => {
    await room.people(...['ada', 'dora'].map((id) => ({ id, roles: ['author'] })));
    await follow('dan', 'rita');
    await follow('rob', 'rita', { policy_id: 'with-rita-later' });
    await reviewed();
    await room.approve('T-1', 'rita');
    expect([await statusOf('dan'), await statusOf('rob')]).toEqual(['APPROVED', 'PENDING']);
    const pass = room.approvals.delegate((await questionOf('rob')).approval_id, 'rob', { to: 'rita', reason: '' });
    await expect(pass).rejects.toMatchObject({ code: 'APPROVAL_DENIED' });
    await room.people({ id: 'rob', roles: ['reviewer'], isActive: false });
    await room.approvals.timekeeper.tickOnce();
    expect(await questionOf('rob')).toMatchObject({ status: 'PENDING', stranded: expect.stringContaining('rob left') });
    await room.people({ id: 'rob', roles: ['reviewer'] });
    expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
  });

  test.each<[string, Partial<NewDelegation>]>([
    ['that ran out', { expires_at: '2020-01-01T00:00:00Z' }],
    ['about other tasks', { conditions: { task_types: ['nothing-like-it'] } }],
  ])('by a word %s does not', async (_, more) => {
    await follow('rob', 'rita', more);
    await reviewed();
    await room.approve('T-1', 'rita');
    expect(await statusOf('rob')).toBe('PENDING');
  });

  test('does no more once it is taken back, and does at once where it is given after the question', async () => {
    await follow('rob', 'rita');
    await reviewed();
    await room.delegations.remove('rob', 'with-rita');
    await follow('dora', 'RITA');
    await room.approve('T-1', 'rita');
    expect([await statusOf('rob'), await statusOf('dora')]).toEqual(['PENDING', 'APPROVED']);
  });

  test('is asked again when the approval is taken back, and when the task is edited', async () => {
    await follow('rob', 'rita');
    await reviewed();
    const { approval_id: approval } = await questionOf('rita');
    await room.approve('T-1', 'rita');
    await room.approvals.withdraw(approval, 'rita', 'too soon');
    expect(await questionOf('rob')).toMatchObject({ status: 'PENDING' });
    expect(await questionOf('rob')).not.toHaveProperty('follows');
    expect((await room.approvals.desk.inbox('rob', 10)).items).toHaveLength(1);
    expect(await tally()).toMatchObject({ approved_count: 0, pending_count: 5 });

    await room.approve('T-1', 'rita');
    await room.tasks.amend([{ task_id: parseId('task', 'T-1'), set: { description: 'other' }, editor: 'ann' }]);
    expect(await questionOf('rob')).toMatchObject({ status: 'PENDING', config_version: 2 });
    await room.approve('T-1', 'rob');
    expect(await room.approve('T-1', 'dan')).toBe('APPROVED');
  });

  test('in a circle, or oneself, is harmless: only what somebody says in person is followed', async () => {
    await follow('rob', 'rita');
    await follow('rita', 'rob');
    await follow('dan', 'rob');
    await follow('dora', 'dora');
    await reviewed();
    await room.approve('T-1', 'rita');
    expect([await statusOf('rob'), await statusOf('dan'), await statusOf('dora')]).toEqual([
      'APPROVED',
      'PENDING',
      'PENDING',
    ]);
    expect(await tally()).toMatchObject({ approved_count: 1 });
  });

  test('never makes the author agree, nor lets anybody answer in their place', async () => {
    await room.people({ id: 'ann', roles: ['author', 'reviewer'] });
    await follow('ann', 'rita');
    await follow('rob', 'ann');
    await reviewed();
    const asked = (await room.approvals.desk.about('T-1')).map(({ reviewer_id }) => reviewer_id);
    expect(asked.toSorted()).toEqual(['ada', 'dan', 'dora', 'rita', 'rob']);
    await room.approve('T-1', 'rita');
    expect(await room.client.hkeys(room.keys.approvalVotes('T-1'))).toEqual(['rita']);
    expect(await statusOf('rob')).toBe('PENDING');
  });
});
