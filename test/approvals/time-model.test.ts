import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TASK_STATES, type TaskState } from '../../src/coordinator/tasks/task.ts';
import { canMove } from '../../src/coordinator/tasks/transitions.ts';
import { parseId } from '../../src/redis/ids.ts';
import { expectSound } from '../coordinator/tasks/room.ts';
import { type ApprovalRoom, anApprovalRoom, policy, type Sketched } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
});
afterAll(() => room[Symbol.asyncDispose]());

/** Ann writes. Rob and Rita are led by Mona, Mona by Bo, who is led by Rob: a circle. Otto is on call. */
const STAFF: readonly Sketched[] = [
  { id: 'ann', roles: ['author', 'admin'] },
  { id: 'rob', roles: ['reviewer'], manager: 'mona' },
  { id: 'rita', roles: ['reviewer'], manager: 'mona' },
  { id: 'mona', roles: ['reviewer'], manager: 'bo' },
  { id: 'bo', roles: ['admin'], manager: 'rob' },
  { id: 'otto', roles: ['reviewer'], manager: 'ann' },
];
const REVIEWERS = STAFF.map(({ id }) => id).filter((id) => id !== 'ann');
const TASK = 'T-1';
/** Those who may answer at this moment. */
let able = new Set<string>();

type Step =
  | { readonly does: 'answers' | 'leaves' | 'returns' | 'loses the role'; readonly who: string }
  | { readonly does: 'time passes'; readonly minutes: number }
  | { readonly does: 'edit' };
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('time passes' as const), minutes: fc.constantFrom(1, 31, 61, 200) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('answers' as const), who: fc.constantFrom(...REVIEWERS, 'ann') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constantFrom('leaves' as const, 'returns' as const, 'loses the role' as const),
      who: fc.constantFrom(...REVIEWERS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('edit' as const) }) },
);

async function take(step: Step): Promise<void> {
  switch (step.does) {
    case 'time passes':
      room.shift(step.minutes * 60_000);
      break;
    case 'answers': {
      const approval = await room.requestOf(TASK, step.who);
      await room.approvals.answer(step.who, [{ approval, action: 'approve', reason: '' }]);
      break;
    }
    case 'edit':
      if ((await room.state(TASK)) === 'REVIEWING') {
        const set = { description: String(Math.random()) };
        await room.tasks.amend([{ task_id: parseId('task', TASK), set, editor: 'ann' }]);
      }
      break;
    default: {
      const person = STAFF.find(({ id }) => id === step.who)!;
      const roles = step.does === 'loses the role' ? ['author'] : person.roles;
      await room.people({ ...person, roles, isActive: step.does !== 'leaves' });
      able[step.does === 'returns' ? 'add' : 'delete'](person.id);
    }
  }
}

/** What must be so at any time, whatever people and the clock do. */
async function expectJust(before: TaskState, step: Step): Promise<void> {
  const [state, asked, tally] = [
    await room.state(TASK),
    await room.approvals.desk.about(TASK),
    await room.approvals.desk.tally(TASK),
  ];
  if (state !== before) {
    expect(canMove(before, state) || before === 'SUBMITTED' || state === 'SUBMITTED').toBe(true);
    if (state === 'APPROVED') expect(step.does, 'only an answer approves').toBe('answers');
  }
  const open = asked.filter(({ status }) => status === 'PENDING').map(({ reviewer_id }) => reviewer_id);
  expect(new Set(open).size, 'nobody is asked twice at a time').toBe(open.length);
  expect(open).not.toContain('ann');
  expect(open.length > 0).toBe(state === 'REVIEWING');
  if (state !== 'REVIEWING') return;
  const agreed = asked.filter(({ status }) => status === 'APPROVED').map(({ reviewer_id }) => reviewer_id);
  for (const id of await room.client.hkeys(room.keys.approvalVotes(TASK))) {
    expect([...able], 'whose vote counts may still give it').toContain(id);
  }
  for (const { voters, min } of tally.needs) {
    expect(voters.length, 'a quorum is never fewer people').toBeGreaterThanOrEqual(min);
    for (const voter of voters) expect([...open, ...agreed], 'who counts was asked').toContain(voter);
  }
}

test('whatever people and the clock do, only answers approve, and a quorum can be met by those who are asked', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 5, maxLength: 25 }),
      fc.integer({ min: 1, max: 2 }),
      async (steps, min_approvers) => {
        await room.redis.flush();
        room.shift(-room.shifted());
        room.terms.policies = [policy({ policy_id: 'p', min_approvers })];
        room.terms.time = { ...room.terms.time, onCall: 'otto' };
        await room.people(...STAFF);
        able = new Set(REVIEWERS);
        await room.draft(TASK);
        await room.approvals.submit(TASK, 'ann');
        for (const step of steps) {
          const before = await room.state(TASK);
          await take(step);
          await room.approvals.timekeeper.tickOnce();
          await expectJust(before, step);
        }
        await expectSound(room);
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);

/** Everything that anybody can do to a task, in whatever state it is. */
const VERBS: Readonly<Record<string, () => Promise<unknown>>> = {
  submit: () => room.approvals.submit(TASK, 'ann'),
  approve: () => room.approve(TASK, 'rob'),
  reject: () => answer('reject'),
  changes: () => answer('request_changes'),
  withdraw: async () => room.approvals.withdraw((await own()) ?? 'T-1.0', 'rob', 'oh'),
  delegate: async () => room.approvals.delegate((await own()) ?? 'T-1.0', 'rob', { to: 'otto', reason: '' }),
  edit: async () => {
    const set = { description: String(Math.random()) };
    await room.tasks.amend([{ task_id: parseId('task', TASK), set, editor: 'ann' }]);
  },
  force: () => twice((by) => room.approvals.force(TASK, by, { reason: 'down', ticket: 'I-1' })),
  waive: () => twice((by) => room.approvals.waive(TASK, 'p', by, { reason: 'down', ticket: 'I-1' })),
  escalate: async () => {
    room.shift(3_600_000);
    await room.approvals.timekeeper.tickOnce();
  },
  cancel: () => room.tasks.cancelOne(TASK, 'no', 'ann'),
  claim: () => room.tasks.work.claim({ agent: 'ag-1' }),
  complete: () => room.tasks.work.complete({ task: TASK, agent: 'ag-1' }),
  drop: () => room.tasks.work.drop({ task: TASK, agent: 'ag-1' }, 'later'),
  ask: () => room.approvals.askLeftOnce(),
};
const own = async () =>
  (await room.approvals.desk.about(TASK)).findLast(({ reviewer_id }) => reviewer_id === 'rob')?.approval_id;
const answer = async (action: 'reject' | 'request_changes') =>
  room.approvals.answer('rob', [{ approval: await room.requestOf(TASK, 'rob'), action, reason: 'so' }]);
async function twice(say: (by: string) => Promise<unknown>): Promise<void> {
  await say('eve');
  await say('bea');
}

/** How a task comes to stand in each state. */
const WAYS: Readonly<Record<TaskState, readonly string[]>> = {
  DRAFT: [],
  SUBMITTED: ['stuck'],
  REVIEWING: ['submit'],
  APPROVED: ['submit', 'approve'],
  APPLYING: ['submit', 'approve', 'claim'],
  COMPLETED: ['submit', 'approve', 'claim', 'complete'],
  REJECTED: ['submit', 'reject'],
  CANCELLED: ['cancel'],
};

test.each(TASK_STATES.flatMap((state) => Object.keys(VERBS).map((verb) => [state, verb] as const)))(
  'in %s, "%s" moves a task along the table or not at all',
  async (state, verb) => {
    await room.redis.flush();
    room.shift(-room.shifted());
    room.terms.policies = [policy({ policy_id: 'p' })];
    await room.people(...STAFF);
    await room.draft(TASK);
    for (const step of WAYS[state]) {
      if (step !== 'stuck') await VERBS[step]!();
    }
    if (state === 'SUBMITTED') await stick();
    expect(await room.state(TASK)).toBe(state);
    const entries = await room.client.xlen(room.keys.events('task'));
    await VERBS[verb]!().catch(() => undefined);
    let at: TaskState = state;
    for (const [, fields] of (await room.client.xrange(room.keys.events('task'), '-', '+')).slice(entries)) {
      const { from, to } = JSON.parse(fields[fields.indexOf('payload') + 1] ?? '{}') as Record<string, TaskState>;
      if (!from || !to) continue;
      expect([from, to, at, canMove(from, to)]).toEqual([at, to, at, true]);
      at = to;
    }
    expect(await room.state(TASK)).toBe(at);
  },
);

/** Submitted where nobody can be asked: its approval did not hold when it was claimed. */
async function stick(): Promise<void> {
  await VERBS.submit!();
  await VERBS.approve!();
  await room.people({ id: 'rob', roles: ['author'] });
  await VERBS.claim!();
  await room.people(...STAFF);
}
