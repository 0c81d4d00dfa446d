import { randomUUID } from 'node:crypto';
import { ReeveError } from '../../errors.ts';
import { GENERAL, lanesFor } from '../agents/matcher.ts';
import { LEASE_CLASSES, type LeaseClass, type LockRef, parseLock, resourceLock } from '../locks/lock.ts';
import type { Locks } from '../locks/locks.ts';
import { skill } from './admission.ts';
import {
  type ClaimOutcome,
  type CompleteOutcome,
  type DropOutcome,
  type FailOutcome,
  type FailureClass,
  type LeaseRef,
  late,
  type Pause,
  type ReportOutcome,
  UNKNOWN,
} from './lease.ts';
import type { Ledger } from './ledger.ts';
import { restOf, type WorkResult } from './result.ts';
import { beat, claim, complete, drop, fail, report } from './scripts.ts';
import { taskSchema } from './task.ts';
import type { TaskStore } from './task-store.ts';
import { UsualWork } from './usual-work.ts';

export interface WorkLimits {
  readonly maxAttempts: number;
  /** First pause after a failure; it doubles. */
  readonly retryMs: number;
  /** How long a plain client is trusted that took a task and has not said so. */
  readonly rawGraceMs: number;
}

export interface WorkOptions {
  readonly store: TaskStore;
  readonly locks: Locks;
  readonly limits: () => WorkLimits;
  readonly ledger: Ledger;
}

export interface ClaimRequest {
  readonly agent: string;
  readonly type?: string | undefined;
  readonly capabilities?: readonly string[] | undefined;
  /** This one; without it, the best. */
  readonly task?: string | undefined;
  readonly leaseClass?: LeaseClass | undefined;
  /** The claim's own id: to ask again with it is the same request. */
  readonly lockId?: string | undefined;
  readonly places?: number | undefined;
}

export const CANDIDATES = 64;
/** How many rounds of candidates that do not fit are passed over before a claim says that there is nothing. */
export const MAX_ROUNDS = 16;
const MAX_REAPS = 8;

/** What agents do with tasks, each a step that happens as a whole or not at all. */
export class Work {
  readonly #options: WorkOptions;
  readonly #usual: UsualWork;

  constructor(options: WorkOptions) {
    this.#options = options;
    this.#usual = new UsualWork(options);
  }

  async claim(request: ClaimRequest): Promise<ClaimOutcome> {
    // Only a request whose id nobody has seen yet cannot be the repetition of another.
    const isUsual = request.task === undefined && request.lockId === undefined;
    if (!isUsual) return this.#claim(request);
    const lockId = randomUUID();
    const leaseClass = request.leaseClass ?? 'agent';
    const reply = await this.#usual.claim({ ...request, lockId, leaseClass });
    return reply
      ? claimOutcome(reply, { agent: request.agent, lockId, leaseClass })
      : this.#claim({ ...request, lockId });
  }

  /** Up to so many, in one step as far as they are usual. Each is taken as a whole or not at all; the rest says why it ended. */
  async claimSeveral(request: Omit<ClaimRequest, 'task' | 'lockId'>, count: number): Promise<SeveralClaims> {
    const outcomes = await Promise.all(Array.from({ length: count }, () => this.claim(request)));
    const claimed = outcomes.filter((one) => one.outcome === 'claimed');
    // An agent that is full is shown what it has: once is enough.
    const each = [...new Map(claimed.map((one) => [one.lease.lock_id, one])).values()];
    const rest = outcomes.find((one) => one.outcome !== 'claimed');
    return { claimed: each, ...(rest && { rest }) };
  }

  /** Each for itself: what became of one says nothing of the others. In the order given. */
  completeSeveral(ends: readonly Ending[]): Promise<CompleteOutcome[]> {
    return Promise.all(ends.map(({ lease, result }) => this.complete(lease, result)));
  }

  async #claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const { store, limits } = this.#options;
    const { agent, type = GENERAL, capabilities = [], leaseClass = 'agent', lockId = randomUUID() } = request;
    const args = {
      ...store.common(agent, lockId),
      agent_type: type,
      lanes: lanesFor(type),
      capabilities: Object.fromEntries(capabilities.map((text) => [skill(text), true])),
      task: request.task ?? '',
      lease_us: LEASE_CLASSES[leaseClass].leaseMs * 1000,
      lease_class: leaseClass,
      hold_us: 0,
      purpose: 'task',
      limit: CANDIDATES,
      places: request.places ?? 1,
      raw_us: limits().rawGraceMs * 1000,
    };
    let reaps = 0;
    for (let round = 0; ; ) {
      const reply = await this.#again(() => store.scripts.run(claim, {}, { ...args, from: round * CANDIDATES }));
      if (reply[0] === 'OVERDUE' && reaps++ < MAX_REAPS) await this.#reap(reply[1] as string);
      else if (reply[0] === 'NONE' && reply[2] === '1' && round < MAX_ROUNDS) round++;
      else return claimOutcome(reply, { agent, lockId, leaseClass });
    }
  }

  /** Says that it began, or how far it is; and renews the lease. */
  async report(lease: LeaseRef, said: { note?: string; percent?: number } = {}): Promise<ReportOutcome> {
    const { store } = this.#options;
    const percent = said.percent === undefined ? '' : String(said.percent);
    const args = { ...this.#named(lease), note: said.note ?? '', percent };
    const reply = await this.#again(() => store.scripts.run(report, {}, args));
    if (reply[0] === 'UNKNOWN') return UNKNOWN;
    if (reply[0] === 'LATE') return late(reply);
    return this.heartbeat(lease);
  }

  /** Renews the task's lock, its resources and the place in the agent's capacity, together or not at all. */
  async heartbeat(lease: LeaseRef): Promise<ReportOutcome> {
    const { store, locks } = this.#options;
    const renewal = await locks.renewal();
    const anew = { lease_us: renewal.extend_us, lease_class: 'process', hold_us: 0, purpose: 'task' };
    const args = { ...this.#named(lease), ...renewal, ...anew };
    const reply = await this.#again(() => store.scripts.run(beat, {}, args));
    if (reply[0] === 'EXTENDED') return { outcome: 'noted', expiresAt: reply[1] as string };
    return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
  }

  async complete(lease: LeaseRef, result?: Partial<WorkResult>, { isRaw = false } = {}): Promise<CompleteOutcome> {
    const { store } = this.#options;
    const { task, agent, lockId = '', token = '' } = lease;
    const asked = { task, agent, lock_id: lockId, token, rest: restOf(result), say_raw: Number(isRaw) };
    const reply =
      (await this.#usual.complete(asked)) ??
      (await this.#again(() => store.scripts.run(complete, {}, { ...store.common(), ...asked })));
    switch (reply[0]) {
      case 'COMPLETED':
        return { outcome: 'completed', at: reply[1] as string, released: reply.slice(2) };
      case 'ALREADY':
        return { outcome: 'already', at: reply[1] as string };
      default:
        return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
    }
  }

  async fail(lease: LeaseRef, failure: Failure): Promise<FailOutcome> {
    const { store, limits } = this.#options;
    const { maxAttempts, retryMs } = limits();
    const { class: kind = 'task', error, result, pauseType = GENERAL, pauseUntil = 0, isForced = false } = failure;
    const args = {
      ...this.#named(lease),
      force: Number(isForced),
      class: kind,
      error: error.slice(0, 2_000),
      rest: restOf({ ...result, errors: [...(result?.errors ?? []), error] }),
      delay_us: retryMs * 1000,
      max_attempts: failure.isFinal ? 0 : maxAttempts,
      pause_type: pauseType,
      pause_until: pauseUntil,
    };
    const reply = await this.#again(() => store.scripts.run(fail, {}, args));
    switch (reply[0]) {
      case 'RETRY':
        return { outcome: 'retry', attempts: Number(reply[1]), inMs: Number(reply[2]) / 1000 };
      case 'FAILED':
        return { outcome: 'failed', attempts: Number(reply[1]) };
      case 'ALREADY':
        return { outcome: 'already' };
      default:
        return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
    }
  }

  async drop(lease: LeaseRef, reason: string): Promise<DropOutcome> {
    const { store } = this.#options;
    const reply = await this.#again(() => store.scripts.run(drop, {}, { ...this.#named(lease), reason }));
    if (reply[0] === 'DROPPED') return { outcome: 'dropped', position: Number(reply[1]) + 1 };
    return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
  }

  /** Ends what a silent holder left at the locks of a task. */
  async reapLocks(task: string, agent: string, claims: string): Promise<void> {
    const { store, locks } = this.#options;
    await locks.reap(parseLock(`task:${store.adeId(task)}`));
    for (const lock of resourcesOf(claims)) await locks.reap(lock);
    if (agent && !agent.startsWith(RAW)) await locks.reap(parseLock(`agent:${agent}`));
  }

  #named({ task, agent, lockId = '', token = '' }: LeaseRef) {
    return { ...this.#options.store.common(agent, lockId), task, token };
  }

  async #reap(key: string): Promise<void> {
    const { locks } = this.#options;
    const lock = locks.scripts.lockOf(key);
    if (lock) await locks.reap(lock);
  }

  /** Every call here may be repeated: a claim is known by its id, an end by its lease. */
  async #again<R>(call: () => Promise<R>): Promise<R> {
    return call().catch((error: unknown) => {
      if (error instanceof ReeveError && error.code === 'REDIS_REPLY_UNKNOWN') return call();
      throw error;
    });
  }
}

export interface SeveralClaims {
  readonly claimed: readonly Extract<ClaimOutcome, { outcome: 'claimed' }>[];
  /** Why there are not more. */
  readonly rest?: ClaimOutcome;
}

export interface Ending {
  readonly lease: LeaseRef;
  readonly result?: Partial<WorkResult> | undefined;
}

export interface Failure {
  readonly class?: FailureClass | 'lost' | 'unheard' | 'timeout' | undefined;
  readonly error: string;
  readonly result?: Partial<WorkResult> | undefined;
  /** On quota: which type of agent pauses, until when (seconds since 1970; 0: until a person resumes). */
  readonly pauseType?: string | undefined;
  readonly pauseUntil?: number | undefined;
  /** No further attempt, whatever is left of them. */
  readonly isFinal?: boolean | undefined;
  /** The holder is not asked: its lease is over. */
  readonly isForced?: boolean | undefined;
}

/** Who holds a task on trust, having taken it from the list without a claim. */
export const RAW = 'raw.';

function resourcesOf(claims: string): LockRef[] {
  if (!claims) return [];
  return (JSON.parse(claims) as [string, string][]).map(([type, id]) => resourceLock(type, id));
}

interface Asked {
  readonly agent: string;
  readonly lockId: string;
  readonly leaseClass: LeaseClass;
}

function claimOutcome(reply: readonly string[], asked: Asked): ClaimOutcome {
  const [word, ...rest] = reply as [string, ...string[]];
  switch (word) {
    case 'CLAIMED':
      return claimed(rest, asked);
    case 'NONE':
      return { outcome: 'none', ready: Number(rest[0]) };
    case 'FULL':
      return { outcome: 'full' };
    case 'REFUSED':
      return { outcome: 'refused', status: rest[0] as string };
    case 'PAUSED':
      return { outcome: 'paused', pause: JSON.parse(rest[0] as string) as Pause };
    case 'BUSY':
      return { outcome: 'busy', why: rest[0] as string, holder: rest[1] as string };
    case 'UNKNOWN':
      return UNKNOWN;
    default:
      throw new Error(`claim.lua answered ${word}`);
  }
}

function claimed(reply: readonly string[], { agent, leaseClass }: Asked): ClaimOutcome {
  const [again, , token, acquired_at, expires_at, attempt, data, lock_id] = reply as string[];
  return {
    outcome: 'claimed',
    again: again === '1',
    task: taskSchema.parse(JSON.parse(data as string)),
    lease: {
      lock_id: lock_id as string,
      fencing_token: token as string,
      agent_id: agent,
      acquired_at: acquired_at as string,
      expires_at: expires_at as string,
      lease_class: leaseClass,
      attempt: Number(attempt),
    },
  };
}
