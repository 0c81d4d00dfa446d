import { Approvals } from './approvals/approvals.ts';
import { Assessor } from './approvals/assessor.ts';
import { USUAL_CRITICALITY } from './approvals/criticality.ts';
import { DelegationStore } from './approvals/delegation-store.ts';
import { PolicyStore } from './approvals/policy-store.ts';
import type { Standing } from './approvals/standing.ts';
import { storePeople } from './approvals/store-people.ts';
import { partsOf } from './approvals/terms.ts';
import { approvalTimeout } from './approvals/timeout-job.ts';
import { type Clock, jittered } from './clock.ts';
import type { Locks } from './coordinator/locks/locks.ts';
import type { Tasks } from './coordinator/tasks/tasks.ts';
import { reason } from './errors.ts';
import type { ReeveEvent } from './events/catalogue.ts';
import type { RightsPicture } from './identity/users.ts';
import type { Handlers, Jobs } from './jobs/jobs.ts';
import type { Logger } from './log.ts';
import { every, type Service, service } from './service.ts';
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
  /** What people may vote as, kept in step with what they may do. */
  readonly rights: RightsPicture;
  readonly handlers: Handlers;
  /** Brings the periodic work forward when an event says that there is some. */
  readonly wake: (event: ReeveEvent, jobs: Jobs) => void;
}

/** How often what was left before the gate is asked for anew. */
const ASK_AGAIN_MS = 15_000;

/** Before anything is counted, what people may vote as stands where scripts see it. */
export const picturing = (approvals: Approvals): Service =>
  service('standing', async () => {
    await approvals.timekeeper.standing.mirrorOnce();
    return undefined;
  });

/** Somebody who is asked may have to be reminded soon; who lost a role may have agreed to what is open. */
const HURRIED = ['approval:requested', 'approval:rights_changed'];
const LOOK_SECONDS = 1;

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
  const { config, store, tasks, locks, live, clock, log } = options;
  const { connection, keys } = tasks.store;
  const thresholds = () => live.get('risk:thresholds');
  const policies = new PolicyStore({ store, clock, service: options.service, fromFile: () => config().policies });
  const delegations = new DelegationStore({ store, connection, keys, clock, service: options.service });
  const criticality = () => config().criticality ?? USUAL_CRITICALITY;
  const approvals = new Approvals({
    tasks,
    assessor: new Assessor({ store: tasks.store, locks, thresholds, criticality, clock }),
    policies,
    delegations,
    people: storePeople({ store, groups: () => config().groups }),
    thresholds,
    terms: async () => ({
      timeout: await live.get('approval:default_timeout'),
      longest: await live.get('approval:max_timeout'),
      reminders: partsOf(await live.get('approval:reminders')),
      onCall: await live.get('approval:on_call'),
      backlog: await live.get('approval:backlog'),
    }),
    allowsUnasked: () => live.isEnabled('auto_approve_low_risk'),
    clock,
    log,
  });
  tasks.guard(approvals);
  const { timekeeper, escalation } = approvals;
  const approval_timeout = approvalTimeout({ store: tasks.store, timekeeper, escalation, log });
  const wake = ({ event }: ReeveEvent, jobs: Jobs) => {
    if (HURRIED.includes(event)) jobs.hurry('approval_timeout', { inSeconds: LOOK_SECONDS });
  };
  return {
    approvals,
    policies,
    delegations,
    rights: rightsPicture(timekeeper.standing, log),
    handlers: { approval_timeout },
    wake,
  };
}

/** Without Redis no vote is counted either: that it could not be told is no reason to keep somebody in. The next turn tells it. */
function rightsPicture(standing: Standing, log: Logger): RightsPicture {
  const orWarn = (error: unknown) => log.warn('what people may vote as was not written', { problem: reason(error) });
  return {
    suspend: (user) => standing.suspend(user).catch(orWarn),
    draw: async () => void (await standing.mirrorOnce().catch(orWarn)),
  };
}
