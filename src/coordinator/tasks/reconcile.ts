import { type Clock, jittered } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Logger } from '../../log.ts';
import type { KeyspaceOptions } from '../../redis/keys.ts';
import { unlessWrongType } from '../../redis/wrong-type.ts';
import { every, type Service } from '../../service.ts';
import type { Locks } from '../locks/locks.ts';
import type { Due } from './overdue.ts';
import { adoptedResult } from './result.ts';
import { drifted, reconcile } from './scripts.ts';
import { Strays } from './strays.ts';
import { WORK_STATUSES, type WorkStatus } from './task.ts';
import type { Tasks } from './tasks.ts';
import { RAW } from './work.ts';

export interface ReconcilerOptions {
  readonly tasks: Tasks;
  readonly locks: Locks;
  readonly keyspace: KeyspaceOptions;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: () => { readonly rawGraceMs: number; readonly rawLeaseMs: number };
}

export interface Reconciled extends Due {
  /** Taken from the list by plain clients. */
  readonly taken: readonly string[];
  /** Pushed to the list by somebody, in vain. */
  readonly thrownOut: readonly string[];
  /** What plain clients wrote and was believed, as `TASK status`. */
  readonly adopted: readonly string[];
  /** What was not. */
  readonly reverted: readonly string[];
  /** Keys under the project's name that are none of its keys. */
  readonly drifted: readonly string[];
}

const PERIOD_MS = 1_000;
/** Tasks that nobody works on, and keys that should not be there, are looked at every so many times. */
const WHOLE_EVERY = 3;
/** Looked at together: Redis does nothing else meanwhile. */
const SLICE = 500;
/** Of all tasks, so many slices each time. */
const SLICES = 4;
/** Whoever took a task from the list may write its status long after it went to somebody else. */
const WATCHED_MS = 600_000;
/** A plain client writes the status first and the result right after; it is given this long. */
const RESULT_MS = 2_000;

/** Compares what plain clients see and write with the truth, and makes the one follow the other. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #strays: Strays;
  readonly #finishedAt = new Map<string, number>();
  #from = 0;
  /** Tasks that plain clients had in hand, and until when each is looked at every time. */
  readonly #watched = new Map<string, number>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#strays = new Strays({ ...options, store: options.tasks.store });
  }

  service(): Service {
    const { clock, log } = this.#options;
    let turns = 0;
    return every('task reconcile', {
      clock,
      pauseMs: () => jittered(PERIOD_MS),
      tick: () => this.once({ isBrief: turns++ % WHOLE_EVERY > 0 }),
      onError: (error) => log.warn('reconciling tasks failed, trying again', { problem: reason(error) }),
    });
  }

  /** Briefly: what plain clients took and what those say who are at work. */
  async once({ isBrief = false } = {}): Promise<Reconciled> {
    const heard = await this.hearOnce({ isBrief });
    const due = await this.#options.tasks.overdue.dueOnce();
    const drifted = isBrief ? [] : await this.#strays.lookOnce();
    if (!isBrief) await this.#endedParents();
    return { ...due, ...heard, drifted };
  }

  /** What plain clients took and said. Comes before any judgement: a task must not be taken from one that has just finished it. */
  async hearOnce({ isBrief = true } = {}): Promise<Pick<Reconciled, 'taken' | 'thrownOut' | 'adopted' | 'reverted'>> {
    const [taken = [], thrownOut = []] = await this.#list();
    return { taken, thrownOut, ...(await this.#statuses(isBrief)) };
  }

  #list(): Promise<string[][]> {
    const { tasks, limits } = this.#options;
    const raw_us = limits().rawGraceMs * 1000;
    const lease = { lease_us: raw_us, lease_class: 'process', hold_us: 0, purpose: 'task', raw_us };
    return tasks.store.scripts.run(reconcile, {}, { ...tasks.store.common(), ...lease });
  }

  /** Tasks that are worked on, and those that plain clients had, each time; of all the others some slices at a time. */
  async #statuses(isBrief: boolean) {
    const { tasks } = this.#options;
    const { connection, keys } = tasks.store;
    const redis = connection.commands;
    const running = await redis.zrange(keys.runningTasks(), '0', '-1');
    const others = isBrief ? [] : await this.#drifted();
    const ids = [...new Set([...running, ...this.#stillWatched(), ...others])];
    const adopted: string[] = [];
    const reverted: string[] = [];
    if (ids.length === 0) return { adopted, reverted };
    const said = await redis.mget(ids.map((id) => keys.taskStatus(id)));
    const records = await tasks.store.records(ids, ['status', 'agent']);
    for (const [at, id] of ids.entries()) {
      const [status, agent] = records[at] as (string | null)[];
      if (agent?.startsWith(RAW) && isRunning(status)) this.#watch(id);
      if (!status || (said[at] ?? '') === status) continue;
      const { word, truth } = await this.#seen(id);
      if (!truth.status || word === truth.status) continue;
      const isAdopted = await this.#adopt(id, word, truth);
      if (isAdopted === undefined) continue;
      (isAdopted ? adopted : reverted).push(`${id} ${word}`);
      if (isAdopted) continue;
      await redis.set(keys.taskStatus(id), truth.status);
      await this.#options.events.append('transition_rejected', {
        task_id: id,
        said: word.slice(0, 100),
        status: truth.status,
      });
    }
    return { adopted, reverted };
  }

  /** What the public status says and what is so, in one step: read apart, a change in between looks like a plain client's word. */
  async #seen(id: string): Promise<Seen> {
    const { connection, keys } = this.#options.tasks.store;
    const replies = await connection.commands
      .multi()
      .get(keys.taskStatus(id))
      .hmget(keys.taskRecord(id), 'status', 'agent', 'lock_id')
      .exec();
    const [word, record] = (replies ?? []).map(([error, reply]) => (error ? null : reply));
    const [status, agent, lockId] = (record ?? []) as (string | null)[];
    return {
      word: typeof word === 'string' ? word : '',
      truth: { status: (status ?? '') as Truth['status'], agent: agent ?? '', lockId: lockId ?? '' },
    };
  }

  async #drifted(): Promise<string[]> {
    const { scripts } = this.#options.tasks.store;
    const found: string[] = [];
    for (let slice = 0; slice < SLICES; slice++) {
      const [[count] = [], ids = []] = await scripts.run(drifted, {}, { from: this.#from, count: SLICE });
      found.push(...ids);
      this.#from = Number(count) < SLICE ? 0 : this.#from + SLICE;
      if (this.#from === 0) break;
    }
    return found;
  }

  #watch(task: string): void {
    this.#watched.set(task, this.#options.clock.now() + WATCHED_MS);
  }

  #stillWatched(): string[] {
    const now = this.#options.clock.now();
    for (const [task, until] of this.#watched) if (until < now) this.#watched.delete(task);
    return [...this.#watched.keys()];
  }

  /** True: believed. False: not. Undefined: not yet. */
  async #adopt(task: string, word: string, truth: Truth): Promise<boolean | undefined> {
    const { tasks } = this.#options;
    if (!WORK_STATUSES.includes(word as WorkStatus)) return false;
    const runs = isRunning(truth.status);
    if (runs && !truth.agent.startsWith(RAW)) return false;
    if (!runs && truth.status !== 'pending' && truth.status !== 'blocked') return false;
    const by = 'a plain client';
    switch (word) {
      case 'assigned':
      case 'in_progress':
        if (!runs) await tasks.judge(task, { to: 'running', unlessEnded: true }, by);
        else if (word === 'in_progress') await tasks.work.report({ task, agent: truth.agent, lockId: truth.lockId });
        if (runs) await tasks.trust(task);
        return true;
      case 'completed':
        return this.#completed(task, truth, runs);
      case 'failed': {
        const error = await this.#errorOf(task);
        if (!runs) await tasks.judge(task, { to: 'failed', unlessEnded: true }, by, error);
        else await tasks.work.fail({ task, agent: truth.agent, lockId: truth.lockId }, { error });
        return true;
      }
      default:
        if (!runs) return false;
        await tasks.work.drop({ task, agent: truth.agent, lockId: truth.lockId }, 'a plain client gave it back');
        return true;
    }
  }

  async #completed(task: string, { agent, lockId }: Truth, runs: boolean): Promise<boolean | undefined> {
    const { tasks, clock } = this.#options;
    const { connection, keys } = tasks.store;
    const text = await unlessWrongType(connection.commands.get(keys.taskResult(task)), null);
    const since = this.#finishedAt.get(task) ?? clock.now();
    this.#finishedAt.set(task, since);
    if (text === null && clock.now() - since < RESULT_MS) return undefined;
    this.#finishedAt.delete(task);
    if (!runs) await tasks.judge(task, { to: 'running', unlessEnded: true }, 'a plain client');
    const owner = runs ? { agent, lockId } : { agent: `${RAW}${task}`, lockId: undefined };
    await tasks.work.complete({ task, ...owner }, adoptedResult(text), { isRaw: true });
    return true;
  }

  async #errorOf(task: string): Promise<string> {
    const { connection, keys } = this.#options.tasks.store;
    const errors = await unlessWrongType(connection.commands.lrange(keys.errorList(), 0, 99), []);
    const own = errors
      .find((text) => text.startsWith(`${task}:`))
      ?.slice(task.length + 1)
      .trim();
    const said = await unlessWrongType(connection.commands.get(keys.taskResult(task)), null);
    const { errors: inResult = [] } = adoptedResult(said);
    return own ?? inResult[0] ?? 'a plain client said that it failed';
  }

  /** Of a task that has ended nobody gets the children first: claims need not look at them any more. */
  async #endedParents(): Promise<void> {
    const { store } = this.#options.tasks;
    const { connection, keys } = store;
    const redis = connection.commands;
    const parents = await redis.smembers(keys.parentTasks());
    const statuses = await store.records(parents, ['status']);
    for (const [at, parent] of parents.entries()) {
      const status = statuses[at]?.[0];
      if (status !== 'completed' && status !== 'failed') continue;
      await redis.srem(keys.parentTasks(), parent);
      await redis.del(keys.childTasks(parent));
    }
  }
}

const isRunning = (status: string | null | undefined): boolean => status === 'assigned' || status === 'in_progress';

interface Seen {
  readonly word: string;
  readonly truth: Truth;
}

interface Truth {
  /** Empty if there is no such task. */
  readonly status: WorkStatus | '';
  readonly agent: string;
  readonly lockId: string;
}
