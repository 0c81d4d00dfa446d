import { z } from 'zod';

/**
 * The streams, and the form of their entries. Each form is one that clients know already:
 * ade: event, timestamp, payload, source. odyssey: event_type, task_id, agent_id, timestamp. sync: op, id, commit …
 */
export const STREAMS = {
  system: { form: 'ade', holds: 'the daemon itself: starts, stops, lost and found dependencies' },
  task: { form: 'ade', holds: 'the approval lifecycle of tasks' },
  approval: { form: 'ade', holds: 'requests, votes, delegations, escalations' },
  lock: { form: 'ade', holds: 'grants, waits, releases, expiries, deadlocks' },
  work: { form: 'odyssey', holds: 'what agents do with tasks' },
  sync: { form: 'sync', holds: 'each asset that a sync added, changed or removed' },
} as const;
export type StreamName = keyof typeof STREAMS;
export const STREAM_NAMES = Object.keys(STREAMS) as StreamName[];

interface EventRow {
  readonly stream: StreamName;
  readonly says: string;
  readonly payload: z.ZodObject;
}

const text = z.string();
const ofTask = z.looseObject({ task_id: text });
const ofApproval = z.looseObject({ approval_id: text, task_id: text });
const ofLock = z.looseObject({ lock: text, agent_id: text });
const ofWork = z.looseObject({ task_id: text, agent_id: text });
const ofAsset = z.looseObject({ op: text, id: text, commit: text });

/** Every kind of event: the stream it goes to and what it must carry. It may carry more. */
export const EVENTS = {
  'daemon:started': {
    stream: 'system',
    says: 'A daemon is ready',
    payload: z.looseObject({ version: text, pid: z.int(), address: text }),
  },
  'daemon:stopping': {
    stream: 'system',
    says: 'A daemon began to drain',
    payload: z.looseObject({ pid: z.int(), why: text }),
  },
  'redis:restarted': {
    stream: 'system',
    says: 'The embedded Redis died and was started again',
    payload: z.looseObject({ restarts: z.int(), why: text }),
  },
  'config:reloaded': {
    stream: 'system',
    says: 'The configuration was read again',
    payload: z.looseObject({ changed: z.array(text), need_restart: z.array(text) }),
  },
  'config:changed': {
    stream: 'system',
    says: 'A live setting was changed; empty is its default',
    payload: z.looseObject({ name: text, from: text, to: text, by: text }),
  },
  'flag:changed': {
    stream: 'system',
    says: 'A feature was switched on or off; empty is its default',
    payload: z.looseObject({ name: text, from: text, to: text, by: text }),
  },
  'sync:published': {
    stream: 'system',
    says: 'A sync published a commit',
    payload: z.looseObject({ source: text, commit: text }),
  },
  'sync:held': {
    stream: 'system',
    says: 'A change of the assets waits for a person',
    payload: z.looseObject({ source: text, hold: text, says: text }),
  },
  'sync:failed': {
    stream: 'system',
    says: 'A sync failed; the assets stay as they were',
    payload: z.looseObject({ source: text, code: text, problem: text }),
  },
  'webhook:disabled': {
    stream: 'system',
    says: 'A webhook failed for too long and is told nothing more',
    payload: z.looseObject({ webhook_id: text, host: text, because: text }),
  },

  'task:state_changed': {
    stream: 'task',
    says: 'A task moved from one state to another',
    payload: z.looseObject({ task_id: text, from: text, to: text }),
  },
  'task:approved': { stream: 'task', says: 'A task has all the approvals it needs', payload: ofTask },
  'task:override_asked': {
    stream: 'task',
    says: 'An admin wants a task to pass in spite of the gate; a second one must agree',
    payload: z.looseObject({ task_id: text, by: text, reason: text, ticket: text }),
  },
  'task:forced': {
    stream: 'task',
    says: 'Two admins let a task pass in spite of the gate',
    payload: z.looseObject({ task_id: text, first: text, second: text, ticket: text }),
  },
  'task:policy_overridden': {
    stream: 'task',
    says: 'Two admins did without what one policy asks for',
    payload: z.looseObject({ task_id: text, policy: text, first: text, second: text, ticket: text }),
  },
  'task:commented': {
    stream: 'task',
    says: 'Somebody said something about a task',
    payload: z.looseObject({ task_id: text, by: text, text }),
  },
  'task:stashed': {
    stream: 'task',
    says: 'What undoes an attempt was saved before it began',
    payload: z.looseObject({ task_id: text, agent_id: text, bytes: z.int() }),
  },
  'task:rolled_back': {
    stream: 'task',
    says: 'An attempt was undone, or that failed, or was left to a person: `outcome`',
    payload: z.looseObject({ task_id: text, outcome: text, by: text }),
  },
  'task:completed': { stream: 'task', says: 'The changes of a task were applied', payload: ofTask },

  'approval:requested': { stream: 'approval', says: 'A reviewer was asked', payload: ofApproval },
  'approval:approved': { stream: 'approval', says: 'A reviewer agreed', payload: ofApproval },
  'approval:rejected': { stream: 'approval', says: 'A reviewer refused', payload: ofApproval },
  'approval:changes_requested': { stream: 'approval', says: 'A reviewer asked for changes', payload: ofApproval },
  'approval:delegated': {
    stream: 'approval',
    says: 'A reviewer passed a question on',
    payload: z.looseObject({ approval_id: text, task_id: text, to: text }),
  },
  'approval:withdrawn': { stream: 'approval', says: 'A reviewer took an approval back', payload: ofApproval },
  'approval:rights_changed': {
    stream: 'approval',
    says: 'What people may answer as changed: the votes of open questions are counted anew',
    payload: z.looseObject({ people: z.array(text) }),
  },
  'approval:lapsed': {
    stream: 'approval',
    says: 'An approval counts no more, for its reviewer left or lost the role: the question is open again',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, because: text }),
  },
  'approval:resolved': {
    stream: 'approval',
    says: 'A question was settled without its reviewer',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, because: text }),
  },

  'approval:reminder': {
    stream: 'approval',
    says: 'A reviewer has not answered yet',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, due_at: text }),
  },
  'approval:escalated': {
    stream: 'approval',
    says: 'Nobody answered in time: the next level is asked, and whoever is on call is told',
    payload: z.looseObject({
      approval_id: text,
      task_id: text,
      reviewer: text,
      to: text,
      on_call: text,
      tier: z.int(),
    }),
  },
  'approval:reassigned': {
    stream: 'approval',
    says: 'A reviewer cannot answer any more: somebody else is asked',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, to: text, because: text }),
  },
  'approval:exhausted': {
    stream: 'approval',
    says: 'Nobody is left to be asked: the question stays open, and whoever is on call is told',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, on_call: text, because: text }),
  },
  'approval:raised': {
    stream: 'approval',
    says: 'A question became more urgent, for too many wait',
    payload: z.looseObject({ approval_id: text, task_id: text, reviewer: text, priority: text }),
  },
  'approval:backlog': {
    stream: 'approval',
    says: 'So much waits for answers that whoever is on call is told',
    payload: z.looseObject({ open: z.int(), limit: z.int(), on_call: text }),
  },
  'approval:backlog_over': {
    stream: 'approval',
    says: 'What waits for answers has become less again',
    payload: z.looseObject({ open: z.int(), limit: z.int() }),
  },

  'lock:acquired': {
    stream: 'lock',
    says: 'A lock was granted; `with` names what a task takes together with its own',
    payload: ofLock,
  },
  'lock:released': { stream: 'lock', says: 'A lock was given back; `with` as above', payload: ofLock },
  'lock:expired': { stream: 'lock', says: 'The holder of a lock fell silent', payload: z.looseObject({ lock: text }) },
  'lock:queued': { stream: 'lock', says: 'An agent waits for a lock', payload: ofLock },
  'lock:promoted': { stream: 'lock', says: 'A waiting agent is next', payload: ofLock },
  'lock:queue_full': {
    stream: 'lock',
    says: 'So many wait for a lock that more are turned away',
    payload: z.looseObject({ lock: text, agent_id: text, depth: z.int() }),
  },
  'lock:deadlock': {
    stream: 'lock',
    says: 'Agents waited for one another in a circle; one of them gave way',
    payload: z.looseObject({
      lock: text,
      agent_id: text,
      lock_id: text,
      cycle: z.array(z.looseObject({ agent: text })),
    }),
  },

  tasks_admitted: { stream: 'work', says: 'Tasks were taken in: `tasks` has their ids', payload: ofTask },
  task_amended: { stream: 'work', says: 'A person changed a task', payload: ofTask },
  task_assigned: { stream: 'work', says: 'An agent claimed a task', payload: ofWork },
  task_started: { stream: 'work', says: 'An agent began a task', payload: ofWork },
  task_progress: { stream: 'work', says: 'An agent said how far it is', payload: ofWork },
  task_completed: { stream: 'work', says: 'An agent finished a task', payload: ofWork },
  task_failed: { stream: 'work', says: 'A task failed; it may be tried again', payload: ofWork },
  task_timeout: { stream: 'work', says: 'A task took longer than it may', payload: ofWork },
  task_dropped: { stream: 'work', says: 'An agent gave a task back', payload: ofWork },
  task_cancelled: { stream: 'work', says: 'A person called a task off', payload: ofTask },
  task_rejected: { stream: 'work', says: 'A person refused a task', payload: ofTask },
  task_reopened: { stream: 'work', says: 'A person brought a task back', payload: ofTask },
  lease_inferred: { stream: 'work', says: 'A plain client took a task; it is trusted for a while', payload: ofWork },
  lease_revived: {
    stream: 'work',
    says: 'The agent of a task spoke again before anyone took the task back, though its lease had ended',
    payload: ofWork,
  },
  lease_lost: { stream: 'work', says: 'The agent of a task fell silent', payload: ofWork },
  late_result: { stream: 'work', says: 'A result came too late and was kept beside', payload: ofWork },
  transition_rejected: { stream: 'work', says: 'A plain client wrote a status that was not believed', payload: ofTask },
  drift_found: {
    stream: 'work',
    says: 'A key of the project is none of its keys',
    payload: z.looseObject({ key: text }),
  },

  'asset:added': { stream: 'sync', says: 'A sync found a new asset', payload: ofAsset },
  'asset:changed': { stream: 'sync', says: 'A sync found an asset changed', payload: ofAsset },
  'asset:moved': { stream: 'sync', says: 'A sync found an asset at another path', payload: ofAsset },
  'asset:repaired': { stream: 'sync', says: 'A deleted or edited asset was put back', payload: ofAsset },
  'asset:removed': { stream: 'sync', says: 'A sync found an asset gone', payload: ofAsset },
} as const satisfies Record<string, EventRow>;

export type EventName = keyof typeof EVENTS;
export type Payload<E extends EventName> = z.input<(typeof EVENTS)[E]['payload']>;

/** An event as everybody reads it, whatever the form of its stream. */
export interface ReeveEvent {
  readonly stream: StreamName;
  /** The entry's id in its Redis stream. */
  readonly id: string;
  readonly event: string;
  readonly at: string;
  readonly source: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
