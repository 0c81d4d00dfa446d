import { Approvals } from '../../src/approvals/approvals.ts';
import { Assessor } from '../../src/approvals/assessor.ts';
import { USUAL_CRITICALITY } from '../../src/approvals/criticality.ts';
import { DelegationStore } from '../../src/approvals/delegation-store.ts';
import type { Person } from '../../src/approvals/people.ts';
import { PolicyStore } from '../../src/approvals/policy-store.ts';
import { storePeople } from '../../src/approvals/store-people.ts';
import type { Terms as TimeTerms } from '../../src/approvals/terms.ts';
import { systemClock } from '../../src/clock.ts';
import type { TaskState } from '../../src/coordinator/tasks/task.ts';
import { silentLog } from '../../src/log.ts';
import { REVIEWER_POLICY, type ReviewerPolicy } from '../../src/reviewer-policy.ts';
import { openStore, type Store } from '../../src/store/database.ts';
import { aTask, aTaskRoom, type Sketch, type TaskRoom } from '../coordinator/tasks/room.ts';
import { testFolder } from '../support/folder.ts';

export interface ApprovalRoom extends TaskRoom {
  readonly approvals: Approvals;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
  readonly store: Store;
  /** What the gate goes by; a test may change it. */
  readonly terms: Terms;
  /** Makes people, or changes them. */
  people(...given: readonly Sketched[]): Promise<void>;
  /** A draft of an author. */
  draft(task: string | Sketch, author?: string): Promise<string>;
  state(task: string): Promise<TaskState>;
  /** The open request of a person about a task. */
  requestOf(task: string, reviewer: string): Promise<string>;
  approve(task: string, reviewer: string): Promise<TaskState>;
}

export type Sketched = Pick<Person, 'id' | 'roles'> & Partial<Person>;

interface Terms {
  policies: ReviewerPolicy[];
  thresholds: { auto_approve: number; medium: number; high: number; critical: number };
  time: TimeTerms;
  isUnaskedAllowed: boolean;
}

export const policy = (given: Partial<ReviewerPolicy> & { policy_id: string }): ReviewerPolicy =>
  REVIEWER_POLICY.parse(given);

export const usualTerms = (): Terms => ({
  policies: [],
  thresholds: { auto_approve: 30, medium: 25, high: 50, critical: 75 },
  time: { timeout: 3_600, longest: 7_200, reminders: [0.5, 0.9], onCall: '', backlog: 0 },
  isUnaskedAllowed: true,
});

/** The gate over a real Redis and a real SQLite file. */
export async function anApprovalRoom(): Promise<ApprovalRoom> {
  const base = await aTaskRoom();
  const folder = testFolder();
  const clock = systemClock;
  const store = await openStore({ dataDir: folder.path, clock, log: silentLog });
  const { tasks, locks, connection, keys } = base;
  const terms = usualTerms();
  const policies = new PolicyStore({ store, clock, service: 'test', fromFile: () => terms.policies, freshMs: 0 });
  const delegations = new DelegationStore({ store, connection, keys, clock, service: 'test' });
  const thresholds = async () => terms.thresholds;
  const criticality = () => USUAL_CRITICALITY;
  const assessor = new Assessor({ store: tasks.store, locks, thresholds, criticality, clock });
  const approvals = new Approvals({
    tasks,
    assessor,
    policies,
    delegations,
    people: storePeople({ store, groups: () => ({ dba: ['dan', 'dora'] }) }),
    thresholds,
    terms: async () => terms.time,
    allowsUnasked: async () => terms.isUnaskedAllowed,
    clock,
    log: silentLog,
  });
  tasks.guard(approvals);

  const people = async (...given: readonly Sketched[]) => {
    for (const { id, roles, isActive = true, manager = null } of given) {
      const at = '2026-01-01T00:00:00.000Z';
      const state = isActive ? ('active' as const) : ('removed' as const);
      const made = { created_at: at, updated_at: at, removed_at: null };
      const row = { id, name: id, email: null, manager, roles: JSON.stringify(roles), state, ...made };
      await store.db
        .insertInto('users')
        .values(row)
        .onConflict((taken) => taken.column('id').doUpdateSet(row))
        .execute();
    }
    await approvals.timekeeper.standing.mirrorOnce();
  };
  const requestOf = async (task: string, reviewer: string) => {
    const all = await approvals.desk.about(task);
    const found = all.findLast(({ reviewer_id, status }) => reviewer_id === reviewer && status === 'PENDING');
    return found?.approval_id ?? `${task}.0`;
  };
  await people({ id: 'local', roles: ['admin'], isActive: false });
  return Object.assign(base, {
    store,
    terms,
    policies,
    delegations,
    approvals,
    people,
    requestOf,
    draft: async (given: string | Sketch, author = 'ann') => {
      const { phase: _, ...task }: Sketch = typeof given === 'string' ? { task_id: given } : given;
      // A test may have emptied Redis since.
      await approvals.timekeeper.standing.mirrorOnce();
      await tasks.admit([{ task: aTask(task), phase: 'open', isDraft: true, author }]);
      return task.task_id;
    },
    state: async (task: string) => (await base.client.get(keys.taskState(task))) as TaskState,
    approve: async (task: string, reviewer: string) => {
      const approval = await requestOf(task, reviewer);
      const [outcome] = await approvals.answer(reviewer, [{ approval, action: 'approve', reason: '' }]);
      if (!outcome || 'error' in outcome) throw outcome?.error ?? new Error('no answer');
      return outcome.state;
    },
    [Symbol.asyncDispose]: async () => {
      await store.stop();
      folder[Symbol.dispose]();
      await connection.stop();
      await base.redis.stop();
    },
  });
}

/** Ann writes, Rob and Rita review, Ada is an admin, Dan and Dora know databases. */
export const USUAL_PEOPLE: readonly Sketched[] = [
  { id: 'ann', roles: ['author'] },
  { id: 'rob', roles: ['reviewer'] },
  { id: 'rita', roles: ['reviewer'] },
  { id: 'ada', roles: ['admin'] },
  { id: 'dan', roles: ['reviewer'] },
  { id: 'dora', roles: ['reviewer'] },
];
