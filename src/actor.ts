import { AsyncLocalStorage } from 'node:async_hooks';

/** On whose behalf something is done, from where and why: what an audit row says besides what happened. */
export interface Actor {
  /** The user, agent or `system`. */
  readonly user: string;
  readonly session?: string | undefined;
  /** The door it came through: http, mcp; none for what the daemon does by itself. */
  readonly door?: string | undefined;
  readonly ip?: string | undefined;
  readonly user_agent?: string | undefined;
  /** What was asked for: the name of the operation. */
  readonly operation?: string | undefined;
  readonly reason?: string | undefined;
  readonly ticket?: string | undefined;
  /** One per call, so that all rows of one call can be found. */
  readonly cmd_id?: string | undefined;
}

/** Who acts where nobody asked: loops, jobs, what a lease that ran out brings about. */
export const SYSTEM: Actor = { user: 'system' };

interface Standing {
  readonly actor: Actor;
  text?: string;
}

/** Carried along by the runtime, so that it reaches a script without passing through the hands of every room between. */
const standing = new AsyncLocalStorage<Standing>();

/** Everything that `work` does, now and after any await, is done on behalf of this actor. */
export const actAs = <T>(actor: Actor, work: () => T): T => standing.run({ actor }, work);

export const currentActor = (): Actor => standing.getStore()?.actor ?? SYSTEM;

/** The actor as scripts get it: JSON, made once for each call however many scripts it runs. */
export function actorText(): string {
  const found = standing.getStore();
  if (!found) return SYSTEM_TEXT;
  found.text ??= JSON.stringify(found.actor);
  return found.text;
}
const SYSTEM_TEXT = JSON.stringify(SYSTEM);
