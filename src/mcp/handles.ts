import { ReeveError } from '../errors.ts';

/** A lease as a model passes it on: one word that says it all, to be given back as it is. */
export interface LeaseHandle {
  readonly task: string;
  readonly agent: string;
  readonly lock_id: string;
}

/** None of its parts has a colon in it. */
export const leaseHandle = ({ task, agent, lock_id }: LeaseHandle): string => `${task}:${agent}:${lock_id}`;

export function readLease(handle: string): LeaseHandle {
  const [task, agent, lock_id, ...rest] = handle.split(':');
  if (!task || !agent || !lock_id || rest.length > 0) throw unreadable('lease', 'claim_task');
  return { task, agent, lock_id };
}

export interface LockHandle {
  readonly lock_id: string;
  readonly agent: string;
  readonly lock: string;
}

/** The name of the lock comes last: it may have colons of its own. */
export const lockHandle = ({ lock_id, agent, lock }: LockHandle): string => `${lock_id}:${agent}:${lock}`;

export function readLock(handle: string): LockHandle {
  const [lock_id, agent, ...rest] = handle.split(':');
  const lock = rest.join(':');
  if (!lock_id || !agent || !lock) throw unreadable('lock_id', 'acquire_lock');
  return { lock_id, agent, lock };
}

const unreadable = (what: string, tool: string) =>
  new ReeveError('USAGE', { problem: `this is no ${what}`, hint: `Give the ${what} as ${tool} returned it.` });
