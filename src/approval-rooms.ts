import { Approvals } from './approvals/approvals.ts';
import { Assessor } from './approvals/assessor.ts';
import { USUAL_CRITICALITY } from './approvals/criticality.ts';
import { DelegationStore } from './approvals/delegation-store.ts';
import { PolicyStore } from './approvals/policy-store.ts';
import { storePeople } from './approvals/store-people.ts';
import { type Clock, jittered } from './clock.ts';
import type { Locks } from './coordinator/locks/locks.ts';
import type { Tasks } from './coordinator/tasks/tasks.ts';
import { reason } from './errors.ts';
import type { Logger } from './log.ts';
import { every, type Service } from './service.ts';
import type { Config } from './settings.ts';
import type { Store } from './store/database.ts';
import type { LiveSettings } from './system/live-settings.ts';

export interface ApprovalRoomsOptions {
  /** Asked on each use: a reload replaces it. */
  readonly config: () => Config['approvals'];
  readonly store: Store;
  readonly tasks: Tasks;
  readonly locks: Locks;
  readonly live: LiveSettings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Which daemon it is: goes into audit rows. */
  readonly service: string;
}

export interface ApprovalRooms {
  readonly approvals: Approvals;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
}

/** How often what was left before the gate is asked for anew. */
const ASK_AGAIN_MS = 15_000;

/** Keeps nothing standing before the gate that somebody could be asked about. */
export const asking = (
  approvals: Approvals,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Service =>
  every('approvals', {
    clock,
    pauseMs: () => jittered(ASK_AGAIN_MS),
    tick: () => approvals.askLeftOnce(),
    onError: (error) => log.warn('asking anew failed', { problem: reason(error) }),
  });

/** The human gate, and the tasks that pass it. */
export function createApprovalRooms(options: ApprovalRoomsOptions): ApprovalRooms {
  const { config, store, tasks, locks, live, clock, log, service } = options;
  const { connection, keys } = tasks.store;
  const thresholds = () => live.get('risk:thresholds');
  const policies = new PolicyStore({ store, clock, service, fromFile: () => config().policies });
  const delegations = new DelegationStore({ store, connection, keys, clock });
  const criticality = () => config().criticality ?? USUAL_CRITICALITY;
  const approvals = new Approvals({
    tasks,
    assessor: new Assessor({ store: tasks.store, locks, thresholds, criticality, clock }),
    policies,
    delegations,
    people: storePeople({ store, groups: () => config().groups }),
    thresholds,
    timeout: () => live.get('approval:default_timeout'),
    allowsUnasked: () => live.isEnabled('auto_approve_low_risk'),
    clock,
    log,
  });
  tasks.guard(approvals);
  return { approvals, policies, delegations };
}
