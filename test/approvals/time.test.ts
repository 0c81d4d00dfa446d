import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ApprovalRequest } from '../../src/approvals/request.ts';
import { handOver, respond } from '../../src/approvals/scripts.ts';
import { expectSound } from '../coordinator/tasks/room.ts';
import { frozenScripts } from '../support/frozen-scripts.ts';
import { type ApprovalRoom, anApprovalRoom, policy, type Sketched, USUAL_PEOPLE, usualTerms } from './room.ts';

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
  await room.store.db.deleteFrom('delegations').execute();
  await room.people(...[...USUAL_PEOPLE, ...EXTRA].map((one) => ({ ...one, isActive: false })));
  await room.reset();
});
afterAll(() => room[Symbol.asyncDispose]());

const HOUR = 3_600_000;
/** Mona leads Rob, Bo leads Mona; Otto is on call. */
const EXTRA = [
  { id: 'mona', roles: ['reviewer'], manager: 'bo' },
  { id: 'bo', roles: ['admin'] },
  { id: 'otto', roles: ['reviewer'] },
];
const tick = () => room.approvals.timekeeper.tickOnce();
const about = (task = 'T-1') => room.approvals.desk.about(task);
const openOf = async (task = 'T-1') =>
  (await about(task)).filter(({ status }) => status === 'PENDING').map(({ reviewer_id }) => reviewer_id);
const inbox = async (person: string) =>
  (await room.approvals.desk.inbox(person, 10)).items.map(({ task_id }) => task_id);
async function told(event: string): Promise<Record<string, unknown>[]> {
  const entries = await room.client.xrange(room.keys.events('approval'), '-', '+');
  return entries
    .filter(([, fields]) => fields[1] === event)
    .map(([, fields]) => JSON.parse(fields[fields.indexOf('payload') + 1] ?? '{}') as Record<string, unknown>);
}
async function audited(action: string): Promise<number> {
  const rows = await room.client.xrange(room.keys.auditOutbox(), '-', '+');
  return rows.filter(([, fields]) => fields[fields.indexOf('action') + 1] === action).length;
}
/** Only Rob is asked, unless more people are made. */
async function askRob(task = 'T-1', manager = 'mona'): Promise<ApprovalRequest> {
  await room.people(...EXTRA.map((one) => ({ ...one, isActive: false })));
  await room.people(...USUAL_PEOPLE.map((one) => ({ ...one, isActive: one.id === 'ann' })));
  await room.people({ id: 'rob', roles: ['reviewer'], ...(manager !== '' && { manager }) });
  await room.draft(task);
  await room.approvals.submit(task, 'ann');
  await room.people(...EXTRA);
  return (await about(task))[0]!;
}

describe('a question', () => {
  test('is due after the usual time, a policy shortens it, a wish changes it, and nothing is longer than the longest', async () => {
    const dueIn = async (task: string, dueSeconds?: number) => {
      await room.draft(task);
      await room.approvals.submit(task, 'ann', { dueSeconds });
      const [{ created_at, due_at } = {}] = (await about(task)) as [ApprovalRequest?];
      return Math.round((Date.parse(due_at!) - Date.parse(created_at!)) / 1000);
    };
    expect(await dueIn('T-1')).toBe(3_600);
    room.terms.time = { ...room.terms.time, timeout: 1_800 };
    expect(await dueIn('T-2')).toBe(1_800);
    expect(await dueIn('T-3', 600)).toBe(600);
    expect(await dueIn('T-4', 10_000)).toBe(7_200);
    room.terms.policies = [policy({ policy_id: 'p', due_seconds: 300 }), policy({ policy_id: 'q', due_seconds: 900 })];
    expect(await dueIn('T-5')).toBe(300);
  });

  test('is reminded of at each part of its time, once, and of what was missed once', async () => {
    await askRob();
    expect(await tick()).toMatchObject({ reminded: 0 });
    room.shift(HOUR / 2);
    expect(await tick()).toMatchObject({ reminded: 1 });
    expect(await tick()).toMatchObject({ reminded: 0 });
    room.shift(0.42 * HOUR);
    expect(await tick()).toMatchObject({ reminded: 1, asked: 0 });
    expect(await told('approval:reminder')).toMatchObject([{ reviewer: 'rob' }, { reviewer: 'rob' }]);
    expect(await audited('remind')).toBe(2);

    await askRob('T-2');
    room.shift(0.95 * HOUR);
    await tick();
    expect((await told('approval:reminder')).filter(({ task_id }) => task_id === 'T-2')).toHaveLength(1);
  });

  test('that was answered is not reminded of', async () => {
    await askRob();
    await room.approve('T-1', 'rob');
    room.shift(HOUR / 2);
    expect(await tick()).toMatchObject({ reminded: 0 });
    expect(await room.client.zcard(room.keys.approvalReminders())).toBe(0);
  });
});

describe('what nobody answers in time', () => {
  test('goes to the manager, more urgent, and from there on; the first can answer no more, and on-call is told', async () => {
    room.terms.time = { ...room.terms.time, onCall: 'otto' };
    const first = await askRob();
    room.shift(HOUR);
    expect(await tick()).toEqual({ lapsed: 0, reminded: 0, asked: 1, closed: 0, stays: 0, raised: 0 });
    expect(await about()).toMatchObject([
      { status: 'EXPIRED', delegated_to: 'mona' },
      { reviewer_id: 'mona', status: 'PENDING', tier: 1, priority: 'HIGH', delegation_chain: ['rob', 'mona'] },
    ]);
    expect([await inbox('rob'), await inbox('mona')]).toEqual([[], ['T-1']]);
    expect(await told('approval:escalated')).toMatchObject([{ reviewer: 'rob', to: 'mona', on_call: 'otto', tier: 1 }]);
    expect(await audited('escalated')).toBe(1);
    const [late] = await room.approvals.answer('rob', [{ approval: first.approval_id, action: 'approve', reason: '' }]);
    expect(late).toMatchObject({
      error: { code: 'APPROVAL_SETTLED', message: expect.stringContaining('mona is asked') },
    });

    room.shift(HOUR);
    await tick();
    expect(await openOf()).toEqual(['bo']);
    room.shift(HOUR);
    await tick();
    expect(await openOf()).toEqual(['otto']);
    expect(await room.approve('T-1', 'otto')).toBe('APPROVED');
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
  });

  test('stays open when nobody is left, can still be answered, is told again, and is never approved', async () => {
    room.terms.time = { ...room.terms.time, onCall: 'pager' };
    const { approval_id } = await askRob('T-1', '');
    room.shift(HOUR);
    expect(await tick()).toMatchObject({ asked: 0, stays: 1 });
    expect(await tick()).toMatchObject({ stays: 0 });
    expect([await room.state('T-1'), await openOf()]).toEqual(['REVIEWING', ['rob']]);
    expect(await told('approval:exhausted')).toMatchObject([{ reviewer: 'rob', on_call: 'pager' }]);
    for (let round = 0; round < 20; round++) {
      room.shift(HOUR);
      await tick();
    }
    expect(await told('approval:exhausted')).toHaveLength(21);
    expect([await room.state('T-1'), await openOf()]).toEqual(['REVIEWING', ['rob']]);
    const [answer] = await room.approvals.answer('rob', [{ approval: approval_id, action: 'approve', reason: '' }]);
    expect(answer).toMatchObject({ state: 'APPROVED' });
  });

  test('is asked of whoever has become the manager since', async () => {
    await askRob('T-1', '');
    room.shift(HOUR);
    await tick();
    await room.people({ id: 'rob', roles: ['reviewer'], manager: 'mona' });
    room.shift(HOUR);
    expect(await tick()).toMatchObject({ asked: 1 });
    expect(await openOf()).toEqual(['mona']);
  });

  test('of many with one manager leaves one question above, and of two that must agree two', async () => {
    for (const [task, min_approvers, left] of [
      ['T-1', 1, ['mona']],
      ['T-2', 2, ['bo', 'mona']],
    ] as const) {
      room.terms.policies = [policy({ policy_id: 'p', min_approvers })];
      await room.people(...EXTRA.map((one) => ({ ...one, isActive: false })));
      const team = ['rob', 'rita', 'dan', 'dora', 'ada'];
      await room.people(...team.map((id) => ({ id, roles: ['reviewer'], manager: 'mona' })));
      await room.draft(task);
      await room.approvals.submit(task, 'ann');
      await room.people(...EXTRA);
      room.shift(HOUR);
      await tick();
      expect((await openOf(task)).sort()).toEqual(left);
      for (const person of left) await room.approve(task, person);
      expect(await room.state(task)).toBe('APPROVED');
      for (const person of team) expect(await inbox(person)).toEqual([]);
    }
  });

  test('goes up the same ladder again when people are asked anew about the same content', async () => {
    await askRob();
    room.shift(HOUR);
    await tick();
    expect(await room.approve('T-1', 'mona')).toBe('APPROVED');
    await room.people({ id: 'mona', roles: ['author'], manager: 'bo' });
    await room.people(...EXTRA.slice(1).map((one) => ({ ...one, isActive: false })));
    await room.tasks.work.claim({ agent: 'ag-1' });
    await room.approvals.askLeftOnce();
    await room.people(...EXTRA);
    expect(await openOf()).toEqual(['rob']);
    room.shift(HOUR);
    await tick();
    expect(await openOf()).toEqual(['mona']);
  });

  test('never goes to whoever made it, nor to one who cannot review', async () => {
    await room.people({ id: 'ann', roles: ['author', 'admin'], manager: 'eva' }, { id: 'eva', roles: ['author'] });
    await askRob('T-1', 'ann');
    await room.people({ id: 'eva', roles: ['author'] });
    room.shift(HOUR);
    expect(await tick()).toMatchObject({ asked: 0, stays: 1 });
    await room.people({ id: 'eva', roles: ['author'], isActive: false });
  });

  test('is caught up with once after the scheduler was down for three hours', async () => {
    room.terms.time = { ...room.terms.time, onCall: 'otto' };
    await askRob();
    room.shift(3 * HOUR);
    expect(await tick()).toEqual({ lapsed: 0, reminded: 0, asked: 1, closed: 0, stays: 0, raised: 0 });
    for (let round = 0; round < 3; round++) {
      expect(await tick()).toEqual({ lapsed: 0, reminded: 0, asked: 0, closed: 0, stays: 0, raised: 0 });
    }
    expect([await told('approval:escalated'), await told('approval:reminder')].map(({ length }) => length)).toEqual([
      1, 0,
    ]);
  });

  test('is escalated once however many daemons look at it', async () => {
    const { approval_id } = await askRob();
    room.shift(HOUR);
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => room.approvals.escalation.escalate(approval_id)),
    );
    expect(outcomes.filter((one) => one === 'asked')).toHaveLength(1);
    expect(await told('approval:escalated')).toHaveLength(1);
  });
});

describe('at the boundary', () => {
  test.each([
    [-1, 'DONE', 'GONE'],
    [0, 'EXPIRED', 'ASKED'],
    [1, 'EXPIRED', 'ASKED'],
  ])('%i µs from the due time an answer and an escalation agree on who wins', async (offset, answered, escalated) => {
    const { approval_id: approval } = await askRob();
    const { wake_us = '0' } = await room.client.hgetall(room.keys.approvalRequest(approval));
    const scripts = frozenScripts(room, Number(wake_us) + offset);
    const common = { ...room.tasks.store.common(), by: 'rob', approval };
    const answers = [{ approval, action: 'approve', reason: '', hash: '', detail: '', followers: [] }];
    const needs = (await room.client.hget(room.keys.taskApprovalStats('T-1'), 'needs')) ?? '';
    const escalate = () =>
      scripts.run(
        handOver,
        {},
        {
          ...common,
          kind: 'escalate',
          wake: wake_us,
          before: needs,
          needs,
          outcome: 'ask',
          to: 'mona',
          to_name: 'Mona',
          because: 'late',
          on_call: '',
          span_us: 1,
          remind: 0,
        },
      );
    expect((await escalate().then(([word]) => word)) === 'EARLY').toBe(offset < 0);
    if (offset >= 0) await reset(approval);
    const [[word = ''] = []] = await scripts.run(respond, {}, { ...common, answers, dry: 0, first: 0 });
    expect(word).toBe(answered);
    expect((await escalate())[0]).toBe(escalated);
    expect(await room.state('T-1')).toBe(offset < 0 ? 'APPROVED' : 'REVIEWING');
  });

  /** As it was before the escalation. */
  async function reset(approval: string): Promise<void> {
    const { keys, client } = room;
    const asked = (await about()).at(-1)!;
    await client.del(keys.approvalRequest(asked.approval_id));
    await client.srem(keys.approvalIndex('T-1'), asked.approval_id);
    await client.zrem(keys.approvalQueue(), asked.approval_id);
    await client.del(keys.userApprovalQueue('mona'));
    await client.hset(keys.approvalRequest(approval), 'status', 'PENDING');
  }

  test('of an answer and an escalation at once exactly one happens, whichever it is', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const task = `T-${round}`;
      const { approval_id } = await askRob(task);
      await room.client.hset(room.keys.approvalRequest(approval_id), { due_us: dueNow(round), wake_us: dueNow(round) });
      const answer = () => room.approvals.answer('rob', [{ approval: approval_id, action: 'approve', reason: '' }]);
      const escalate = () => room.approvals.escalation.escalate(approval_id);
      await (round % 2 === 0 ? Promise.all([answer(), escalate()]) : Promise.all([escalate(), answer()]));
      const [state, open] = [await room.state(task), await openOf(task)];
      expect([state, open]).toEqual(state === 'APPROVED' ? ['APPROVED', []] : ['REVIEWING', [open[0]]]);
      const escalations = (await told('approval:escalated')).filter(({ task_id }) => task_id === task);
      expect(escalations).toHaveLength(state === 'APPROVED' ? 0 : 1);
      seen.add(state);
    }
    expect(seen.size).toBeGreaterThan(0);
  });
  const dueNow = (round: number) => String(Date.now() * 1000 + room.shifted() * 1000 + (round % 5) * 1_000 - 1_000);
});

describe('somebody who cannot answer any more', () => {
  test('has questions that go to the manager: left, or without the role', async () => {
    await askRob('T-1');
    await tick();
    await room.people({ id: 'rob', roles: ['reviewer'], manager: 'mona', isActive: false });
    expect(await tick()).toMatchObject({ asked: 1 });
    expect(await about()).toMatchObject([
      { status: 'DELEGATED', delegated_to: 'mona' },
      { reviewer_id: 'mona', status: 'PENDING', tier: 0 },
    ]);
    expect(await told('approval:reassigned')).toMatchObject([
      { reviewer: 'rob', to: 'mona', because: expect.stringContaining('left') },
    ]);
    expect(await inbox('rob')).toEqual([]);
    expect(await room.approve('T-1', 'mona')).toBe('APPROVED');

    await askRob('T-2');
    await tick();
    await room.people({ id: 'rob', roles: ['author'], manager: 'mona' });
    expect(await tick()).toMatchObject({ asked: 1 });
    expect(await openOf('T-2')).toEqual(['mona']);
  });

  test('is left out where enough others are asked and nobody stands in, and is told of once where not', async () => {
    room.terms.policies = [policy({ policy_id: 'p', min_approvers: 4 })];
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    await tick();
    await room.people({ id: 'rob', roles: ['reviewer'], isActive: false });
    expect(await tick()).toMatchObject({ closed: 1, stays: 0 });
    await room.people({ id: 'rita', roles: ['reviewer'], isActive: false });
    expect(await tick()).toMatchObject({ closed: 0, stays: 1 });
    await room.people({ id: 'new', roles: ['author'] });
    expect(await tick()).toMatchObject({ closed: 0, stays: 0 });
    expect(await told('approval:exhausted')).toMatchObject([{ reviewer: 'rita' }]);
    await room.people({ id: 'new', roles: ['author'], isActive: false });
  });

  test('lets a delegate answer what was asked before, and gets it back when that ends', async () => {
    await askRob();
    await tick();
    await room.delegations.add({
      owner_id: 'rob',
      policy_id: 'leave',
      delegate_to: 'otto',
      kind: 'instead',
      conditions: {},
      cascade: true,
      by: 'rob',
    });
    expect(await tick()).toMatchObject({ asked: 1 });
    expect(await openOf()).toEqual(['otto']);
    await room.delegations.remove('rob', 'leave');
    expect(await tick()).toMatchObject({ asked: 1 });
    expect(await openOf()).toEqual(['rob']);
    expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
  });
});

describe('the vote of somebody who has no right to it any more', () => {
  const twoOf = async (...people: readonly Sketched[]) => {
    room.terms.policies = [policy({ policy_id: 'data', min_approvers: 2, required_roles: ['dba'] })];
    await room.people({ id: 'mona', roles: ['reviewer'] }, ...people);
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    await tick();
    expect(await openOf('T-1')).toEqual(['dan', 'dora']);
    expect(await room.approve('T-1', 'dan')).toBe('REVIEWING');
  };
  const counts = async () => {
    const { approved_count, pending_count, quorum_reached } = await room.approvals.desk.tally('T-1');
    return { approved_count, pending_count, quorum_reached };
  };

  test('counts no more while others still decide, and a manager is asked', async () => {
    await twoOf({ id: 'dan', roles: ['reviewer'], manager: 'mona' });
    await room.people({ id: 'dan', roles: ['reviewer'], manager: 'mona', isActive: false });
    expect(await tick()).toMatchObject({ lapsed: 1, asked: 1 });
    expect(await openOf('T-1')).toEqual(['dora', 'mona']);
    expect(await counts()).toEqual({ approved_count: 0, pending_count: 2, quorum_reached: false });
    expect(await told('approval:lapsed')).toMatchObject([{ reviewer: 'dan', task_id: 'T-1' }]);
    expect(await room.approve('T-1', 'dora')).toBe('REVIEWING');
    expect(await room.approve('T-1', 'mona')).toBe('APPROVED');
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
  });

  test('leaves no task behind about which everybody answered before anybody looked', async () => {
    await twoOf({ id: 'dan', roles: ['reviewer'], manager: 'mona' });
    await room.people({ id: 'dan', roles: ['reviewer'], manager: 'mona', isActive: false });
    expect(await room.approve('T-1', 'dora')).toBe('REVIEWING');
    expect(await openOf('T-1')).toEqual([]);
    expect(await tick()).toMatchObject({ lapsed: 1, asked: 1 });
    expect(await room.approve('T-1', 'mona')).toBe('APPROVED');
  });

  test('is asked of a colleague who came since, where nobody is above and the others are too few', async () => {
    room.terms.policies = [policy({ policy_id: 'all', min_approvers: 5 })];
    await room.people({ id: 'otto', roles: ['author'] });
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    await tick();
    const asked = await openOf('T-1');
    expect(await room.approve('T-1', 'rita')).toBe('REVIEWING');
    await room.people({ id: 'rita', roles: ['author'] });
    expect(await tick()).toMatchObject({ lapsed: 1, asked: 0, stays: 1 });
    await room.people({ id: 'otto', roles: ['reviewer'] });
    expect(await tick()).toMatchObject({ lapsed: 0, asked: 1 });
    expect(await openOf('T-1')).toEqual([...asked.filter((id) => id !== 'rita'), 'otto']);
  });

  test('may be given anew by one who has the role again, once', async () => {
    await twoOf({ id: 'dan', roles: ['reviewer'] });
    await room.people({ id: 'dan', roles: ['reviewer'], isActive: false });
    expect(await tick()).toMatchObject({ lapsed: 1, stays: 1 });
    expect(await tick()).toMatchObject({ lapsed: 0, stays: 0 });
    await room.people({ id: 'dan', roles: ['reviewer'] });
    expect(await room.approve('T-1', 'dan')).toBe('REVIEWING');
    expect(await room.approve('T-1', 'dora')).toBe('APPROVED');
  });

  test('goes with those who followed it, who are asked again', async () => {
    await room.delegations.add({
      owner_id: 'dora',
      policy_id: 'trust',
      delegate_to: 'dan',
      kind: 'follow',
      conditions: {},
      cascade: false,
      by: 'dora',
    });
    room.terms.policies = [policy({ policy_id: 'both', min_approvers: 2 })];
    await room.people({ id: 'dan', roles: ['reviewer'] });
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    expect(await room.approve('T-1', 'dan')).toBe('REVIEWING');
    expect(await openOf('T-1')).not.toContain('dora');
    await room.people({ id: 'dan', roles: ['author'] });
    expect(await tick()).toMatchObject({ lapsed: 1 });
    expect(await openOf('T-1')).toContain('dora');
    await room.delegations.remove('dora', 'trust');
  });
});

describe('the claim counts anew', () => {
  const claim = () => room.tasks.work.claim({ agent: 'ag-1' });
  const approved = async () => {
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    expect(await room.approve('T-1', 'rob')).toBe('APPROVED');
  };

  test.each([
    ['left', { id: 'rob', roles: ['reviewer'], isActive: false }],
    ['lost the role', { id: 'rob', roles: ['author'] }],
    ['became an agent', { id: 'rob', roles: ['reviewer', 'agent'] }],
  ])('without the vote of one who %s since', async (_, person) => {
    await approved();
    await room.people(person);
    expect(await claim()).toMatchObject({ outcome: 'none' });
    expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['SUBMITTED', 'blocked']);
    await room.approvals.askLeftOnce();
    expect(await room.approve('T-1', 'rita')).toBe('APPROVED');
    expect(await claim()).toMatchObject({ outcome: 'claimed' });
  });

  test('and goes on counting one who has other roles since, and the same right', async () => {
    await approved();
    await room.people({ id: 'rob', roles: ['admin'] });
    expect(await claim()).toMatchObject({ outcome: 'claimed' });
  });

  test('without a delegate whose principal left, or a role that nobody has any more', async () => {
    room.terms.policies = [policy({ policy_id: 'data', required_roles: ['dba'] })];
    await room.delegations.add({
      owner_id: 'dan',
      policy_id: 'd',
      delegate_to: 'rob',
      kind: 'instead',
      conditions: {},
      cascade: true,
      by: 'dan',
    });
    await approved();
    await room.people({ id: 'dan', roles: ['reviewer'], isActive: false });
    expect(await claim()).toMatchObject({ outcome: 'none' });
    expect(await room.state('T-1')).toBe('SUBMITTED');
  });

  test('and hands nothing out while nobody knows who may vote', async () => {
    await approved();
    await room.client.del(room.keys.approvalStanding());
    expect(await claim()).toMatchObject({ outcome: 'none' });
  });
});

describe('a backlog', () => {
  test('makes what is due first more urgent, once, is told once, and approves nothing', async () => {
    room.terms.time = { ...room.terms.time, backlog: 10, onCall: 'otto' };
    await room.draft('T-1');
    await room.approvals.submit('T-1', 'ann');
    expect(await tick()).toMatchObject({ raised: 0 });
    await room.draft('T-2');
    await room.approvals.submit('T-2', 'ann');
    expect(await tick()).toMatchObject({ raised: 10 });
    expect(await tick()).toMatchObject({ raised: 0 });
    expect((await about('T-1'))[0]).toMatchObject({ priority: 'HIGH', status: 'PENDING' });
    expect(await told('approval:backlog')).toMatchObject([{ open: 10, limit: 10, on_call: 'otto' }]);
    expect(await Promise.all([room.state('T-1'), room.state('T-2')])).toEqual(['REVIEWING', 'REVIEWING']);
    await room.approve('T-1', 'rob');
    await tick();
    expect(await told('approval:backlog_over')).toHaveLength(1);
  });
});

test('counts of today are of this UTC day, also where nothing happens on the next', async () => {
  const stats = () => room.approvals.desk.stats('rob', 2);
  for (const task of ['T-1', 'T-2']) {
    await room.draft(task);
    await room.approvals.submit(task, 'ann');
  }
  await room.approve('T-1', 'rob');
  const approval = await room.requestOf('T-2', 'rob');
  await room.approvals.answer('rob', [{ approval, action: 'reject', reason: 'no' }]);
  expect(await stats()).toMatchObject({
    approved_today: 1,
    rejected_today: 1,
    days: [{ approved: 1, rejected: 1 }, { approved: 0 }],
  });
  await tick();
  room.shift(24 * HOUR);
  await tick();
  expect(await room.client.hmget(room.keys.userApprovalStats('rob'), 'approved_today', 'rejected_today')).toEqual([
    '0',
    '0',
  ]);
  expect(await stats()).toMatchObject({ approved_today: 0, days: [{ approved: 0 }, { approved: 1, rejected: 1 }] });
});
