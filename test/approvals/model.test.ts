import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AnswerAction } from '../../src/approvals/request.ts';
import type { TaskState } from '../../src/coordinator/tasks/task.ts';
import { canMove } from '../../src/coordinator/tasks/transitions.ts';
import { parseId } from '../../src/redis/ids.ts';
import { expectSound } from '../coordinator/tasks/room.ts';
import { type ApprovalRoom, anApprovalRoom, policy, USUAL_PEOPLE } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
  await room.people(...USUAL_PEOPLE);
  room.terms.policies = [policy({ policy_id: 'two', min_approvers: 2 })];
});
afterAll(() => room[Symbol.asyncDispose]());

/** All that is needed to say what must happen: where the task stands, and who agreed to what it is now. */
interface Model {
  state: TaskState;
  votes: Set<string>;
  forcedBy: string | undefined;
  edits: number;
}

interface Step {
  readonly says: string;
  /** What should become of it; may change nothing. */
  readonly model: (model: Model) => void;
  readonly run: () => Promise<unknown>;
}

const TASK = 'T-1';
const BEFORE: readonly TaskState[] = ['DRAFT', 'SUBMITTED', 'REVIEWING'];
const OPEN: readonly TaskState[] = [...BEFORE, 'APPROVED'];
const lease = { task: TASK, agent: 'ag-1' };

const answer = (by: string, action: AnswerAction): Step => ({
  says: `${by}: ${action}`,
  model: (model) => {
    if (model.state !== 'REVIEWING' || model.votes.has(by)) return;
    if (action === 'approve') model.votes.add(by);
    if (action === 'reject') model.state = 'REJECTED';
    if (action === 'request_changes') Object.assign(model, { state: 'DRAFT', votes: new Set() });
    if (model.votes.size >= 2) model.state = 'APPROVED';
  },
  run: async () => {
    const approval = await room.requestOf(TASK, by);
    await room.approvals.answer(by, [{ approval, action, reason: 'so' }]);
  },
});
const step = (says: string, model: Step['model'], run: Step['run']): Step => ({ says, model, run });
const from = (states: readonly TaskState[], change: (model: Model) => void) => (model: Model) => {
  if (states.includes(model.state)) change(model);
};

const STEPS: readonly Step[] = [
  step(
    'submit',
    from(['DRAFT', 'SUBMITTED'], (model) => Object.assign(model, { state: 'REVIEWING', votes: new Set() })),
    () => room.approvals.submit(TASK, 'ann'),
  ),
  ...['rob', 'rita', 'dan'].flatMap((by) => [answer(by, 'approve'), answer(by, 'approve')]),
  answer('rob', 'reject'),
  answer('ada', 'request_changes'),
  step(
    'rob withdraws',
    (model) => {
      if (!['REVIEWING', 'APPROVED'].includes(model.state) || !model.votes.delete('rob')) return;
      if (model.state === 'APPROVED' && model.votes.size < 2) model.state = 'REJECTED';
    },
    async () => {
      const own = (await room.approvals.desk.about(TASK)).findLast(({ reviewer_id }) => reviewer_id === 'rob');
      await room.approvals.withdraw(own?.approval_id ?? 'T-1.0', 'rob', 'oh');
    },
  ),
  step(
    'edit',
    from(OPEN, (model) => {
      model.edits += 1;
      model.forcedBy = undefined;
      if (model.state !== 'DRAFT') Object.assign(model, { state: 'REVIEWING', votes: new Set() });
    }),
    async () => {
      if (!OPEN.includes(await room.state(TASK))) return;
      const description = String(Math.random());
      await room.tasks.amend([{ task_id: parseId('task', TASK), set: { description }, editor: 'ann' }]);
    },
  ),
  ...['eve', 'bea'].map((by) =>
    step(
      `${by} forces`,
      from(BEFORE, (model) => {
        if (model.forcedBy === undefined) model.forcedBy = by;
        else if (model.forcedBy !== by)
          Object.assign(model, { state: 'APPROVED', votes: new Set(), forcedBy: undefined });
      }),
      () => room.approvals.force(TASK, by, { reason: 'down', ticket: 'I-1' }),
    ),
  ),
  step(
    'cancel',
    from([...OPEN, 'APPLYING'], (model) => {
      model.state = 'CANCELLED';
    }),
    () => room.tasks.cancelOne(TASK, 'no', 'ann'),
  ),
  step(
    'claim',
    from(['APPROVED'], (model) => {
      model.state = 'APPLYING';
    }),
    () => room.tasks.work.claim({ agent: 'ag-1' }),
  ),
  step(
    'drop',
    from(['APPLYING'], (model) => {
      model.state = 'APPROVED';
    }),
    () => room.tasks.work.drop(lease, 'later'),
  ),
  step(
    'complete',
    from(['APPLYING'], (model) => {
      model.state = 'COMPLETED';
    }),
    () => room.tasks.work.complete(lease),
  ),
];

const anyStep = fc.constantFrom(...STEPS).map((one) => Object.assign(one, { toString: () => one.says }));

async function moves(): Promise<{ from: TaskState; to: TaskState }[]> {
  const entries = await room.client.xrange(room.keys.events('task'), '-', '+');
  return entries.flatMap(([, fields]) => {
    const { from: left, to } = JSON.parse(fields[fields.indexOf('payload') + 1] ?? '{}') as Record<string, TaskState>;
    return left && to ? [{ from: left, to }] : [];
  });
}

test('whatever people and agents do, a task moves only along the table, and stands where a few lines say it should', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 25 }), async (steps) => {
      await room.redis.flush();
      await room.draft(TASK);
      const model: Model = { state: 'DRAFT', votes: new Set(), forcedBy: undefined, edits: 0 };
      for (const one of steps) {
        one.model(model);
        // What is refused changes nothing; that is what is looked at.
        await one.run().catch(() => undefined);
        expect(await room.state(TASK), `after ${one.says}`).toBe(model.state);
      }
      const seen = await moves();
      let at: TaskState = 'DRAFT';
      for (const move of seen) {
        expect(move.from).toBe(at);
        expect(canMove(move.from, move.to), `${move.from} → ${move.to}`).toBe(true);
        at = move.to;
      }
      expect(at).toBe(model.state);
      expect(await room.client.hget(room.keys.taskConfig(TASK), 'version')).toBe(String(model.edits + 1));
      expect(await room.client.zscore(room.keys.tasksByState(at), TASK)).not.toBeNull();
      const pending = (await room.approvals.desk.about(TASK)).filter(({ status }) => status === 'PENDING');
      expect(pending.length > 0).toBe(model.state === 'REVIEWING');
      await expectSound(room);
    }),
    { numRuns: 60 },
  );
}, 120_000);
