import type { ErrorCode, ReeveError } from '../errors.ts';
import type { Hold } from '../registry/holds.ts';
import type { Change, Plan } from '../registry/plan.ts';
import type { SyncOutcome } from './reconciler.ts';

export const TRIGGERS = ['start', 'schedule', 'webhook', 'manual', 'write', 'release'] as const;
export type Trigger = (typeof TRIGGERS)[number];

export const RUN_OUTCOMES = [
  'unchanged',
  'repaired',
  'planned',
  'held',
  'published',
  'busy',
  'failed',
  'cancelled',
] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

export interface Counts {
  readonly added: number;
  readonly changed: number;
  readonly moved: number;
  readonly removed: number;
  readonly bad: number;
  readonly conflict: number;
  readonly skipped: number;
  readonly held: number;
}

/** One sync, as it is told and kept: an entry of asset:sync:runs. */
export interface RunRecord {
  readonly id: string;
  readonly source: string;
  readonly trigger: Trigger;
  readonly outcome: RunOutcome;
  readonly dry_run: boolean;
  readonly full: boolean;
  readonly started_at: string;
  readonly took_ms: number;
  readonly commit?: string | undefined;
  readonly counts?: Counts | undefined;
  /** The first of what changed, or would. */
  readonly changes?: readonly Change[] | undefined;
  /** It waits for a person as a whole. */
  readonly hold?: ToldHold | undefined;
  /** Parts of it that wait for a person since this sync; the rest went ahead. */
  readonly holds?: readonly ToldHold[] | undefined;
  readonly repaired?: readonly string[] | undefined;
  readonly problem?: RunProblem | undefined;
}

export type ToldHold = Pick<Hold, 'id' | 'kind' | 'says'>;

export interface RunProblem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
  readonly retry_after_seconds?: number | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

const MOST_CHANGES = 100;

/** The telling part of an outcome. */
export function toldOf(
  outcome: SyncOutcome,
): Pick<RunRecord, 'outcome' | 'commit' | 'counts' | 'changes' | 'hold' | 'holds' | 'repaired'> {
  const { commit } = outcome;
  switch (outcome.outcome) {
    case 'unchanged':
    case 'lagging':
      return { outcome: 'unchanged', commit };
    case 'repaired':
      return { outcome: 'repaired', commit, repaired: outcome.ids.slice(0, MOST_CHANGES) };
    case 'planned':
      return { outcome: 'planned', commit, ...planned(outcome.plan) };
    case 'published': {
      const holds = outcome.held.slice(0, MOST_CHANGES).map(toldHold);
      return { outcome: 'published', commit, ...planned(outcome.plan), ...(holds.length > 0 && { holds }) };
    }
    case 'held':
      return { outcome: 'held', commit, hold: toldHold(outcome.hold), ...planned(outcome.plan) };
  }
}

export function problemOf({ code, message, next, details }: ReeveError): RunProblem {
  const { retryAfterSeconds: seconds } = details;
  return { code, message, next, details, ...(typeof seconds === 'number' && { retry_after_seconds: seconds }) };
}

const toldHold = ({ id, kind, says }: Hold): ToldHold => ({ id, kind, says });

const planned = ({ changes, paths }: Plan) => {
  const ops = Map.groupBy(changes, ({ op }) => op);
  const statuses = Map.groupBy(paths.values(), ({ status }) => status);
  const counts: Counts = {
    added: ops.get('added')?.length ?? 0,
    changed: ops.get('changed')?.length ?? 0,
    moved: ops.get('moved')?.length ?? 0,
    removed: ops.get('removed')?.length ?? 0,
    bad: statuses.get('bad')?.length ?? 0,
    conflict: statuses.get('conflict')?.length ?? 0,
    skipped: statuses.get('skipped')?.length ?? 0,
    held: statuses.get('held')?.length ?? 0,
  };
  return { counts, changes: changes.slice(0, MOST_CHANGES) };
};
