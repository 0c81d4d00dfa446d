import type { Plan } from './plan.ts';

export interface Publication {
  readonly plan: Plan;
  /** Name of the source, for events and history. */
  readonly source: string;
  /** The commit the plan was made against; undefined for the first sync. Anything else in Redis means: stale. */
  readonly previousCommit: string | undefined;
  /** Fencing number of the sync lock; a publish with a lower one than was ever given out is refused. */
  readonly fence: number;
  readonly configFingerprint: string;
  /** Who made the commit, for events and history, if the source knows. */
  readonly author?: string;
  /** Called between chunks of a large publish, and once with done = total after the commit. */
  readonly progress?: (done: number, total: number) => void;
}

export type Published =
  | { readonly outcome: 'published'; readonly generation: number; readonly changed: number }
  /** Someone else published, or a newer sync has begun: read known() again and plan anew. Nothing was written. */
  | { readonly outcome: 'stale'; readonly commit: string | undefined; readonly fence: number };
