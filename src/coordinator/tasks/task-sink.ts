import type { Phase, Station } from './station.ts';
import type { Task, TaskContent, TaskId, WorkStatus } from './task.ts';

/**
 * What the task room offers to a source of tasks, the prd bridge for one. Every call may be repeated after a lost
 * answer: an admission of a known task, a verdict that already holds and a second settling change nothing.
 *
 * A batch of edits arrives as admit, then amend, then cancel, so that an edge never points at a task not yet admitted.
 * Dependencies across the batch, cycles and priorities are the sink's to judge: it alone sees every task.
 */
export interface TaskSink {
  /** Takes in tasks that it does not know. The source may know which end of their priorities is urgent. */
  admit(admissions: readonly Admission[], hint?: AdmissionHint): Promise<void>;
  /** Carries a person's edits over. A field that is not named stays as it is. */
  amend(amendments: readonly Amendment[]): Promise<void>;
  /** Calls tasks off; who works on one learns it with the next beat. Those that ended stay as they ended. */
  cancel(ids: readonly TaskId[], why: string): Promise<void>;
  /** Where these tasks stand; those it does not know are left out. */
  standings(ids: readonly TaskId[]): Promise<ReadonlyMap<TaskId, Standing>>;
  /** How many tasks it knows, cheaply: fewer than expected means that Redis lost them. */
  size(): Promise<number>;
  /** What happened and is not settled, oldest first. */
  outcomes(limit: number): Promise<readonly Outcome[]>;
  /** These outcomes are written down elsewhere, durably, and need not be offered again. */
  settle(ids: readonly string[]): Promise<void>;
}

export interface AdmissionHint {
  readonly priorityOrder?: 'asc' | 'desc' | undefined;
}

export interface Admission {
  readonly task: Task;
  /** Where its source says it stands. Running, without a lease: somebody may be at it, so it gets a grace first. */
  readonly phase: Phase;
  readonly agent?: string | undefined;
  /** A person put it aside: it is not offered until one takes that back. */
  readonly isHeld?: boolean | undefined;
  /** Why it must not start, in words; everything else about it stands. */
  readonly quarantine?: string | undefined;
  /** Whose it is; by default its origin's. */
  readonly author?: string | undefined;
  /** It waits for somebody to submit it. */
  readonly isDraft?: boolean | undefined;
}

export interface Amendment {
  readonly task_id: TaskId;
  readonly set?: Partial<TaskContent> | undefined;
  /** Who edits it; by default the file. */
  readonly editor?: string | undefined;
  readonly verdict?: Verdict | undefined;
  /** Present: quarantined from now on. Null: no longer, as far as the source is concerned. */
  readonly quarantine?: string | null | undefined;
}

/**
 * A person's word on how the task stands; it wins over any lease.
 * completed, failed, cancelled: end it so. open: back to the queue, also after its end. running: `agent` works on it
 * by hand, as a plain client would. held / released: put aside, or taken back.
 */
export interface Verdict {
  readonly to: Phase | 'held' | 'released';
  readonly agent?: string | undefined;
  /** Given by one who saw it open. If it has ended since, that stands. */
  readonly unlessEnded?: boolean | undefined;
}

export interface Standing {
  readonly station: Station;
  readonly status: WorkStatus;
  readonly agent?: string | undefined;
}

/** One thing that happened to a task. Its id is that of its entry in the outbox: the same thing never has two. */
export interface Outcome {
  readonly id: string;
  readonly event: string;
  readonly task_id: string;
  readonly agent_id?: string | undefined;
  /** RFC 3339, by the Redis server's clock. */
  readonly at: string;
  /** Where the task stands since; absent if it did not move. */
  readonly station?: Station | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
}
