import { randomUUID } from 'node:crypto';
import { type Clock, jittered } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { every, type Service } from '../service.ts';
import { formatJob, JOB_TYPES, type Job, type JobType, parseJob } from './job.ts';
import { due, plan, promote, unlock } from './scripts.ts';

export interface JobsOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly handlers: Handlers;
  /** Who holds job locks: one name for each life of a daemon. */
  readonly worker?: string;
}

export type Handlers = { readonly [T in JobType]?: Handler };

export interface Handler {
  /** Again and again, once each period among all daemons; what is planned besides comes on top. Asked each time. */
  readonly everySeconds?: () => number | Promise<number>;
  /** After so long another daemon may take it for dead and do it again. */
  readonly limitMs: number;
  readonly run: (job: Job, signal: AbortSignal) => Promise<unknown>;
}

export interface RunCounts {
  readonly ran: number;
  readonly failed: number;
}

const BATCH = 100;
const RETRY_SECONDS = 10;
const POLL_MS = 500;

/**
 * Work that is due at a time, shared by all daemons on one Redis. A job is in the plan until it is due and in the queue
 * of its type until it is done; whoever does it holds its job lock meanwhile. A daemon that dies leaves the job in the
 * queue, and the lock runs out: at least once, and in one place at a time.
 */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #worker: string;

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#worker = options.worker ?? randomUUID();
  }

  /** Plans a job; the same one planned twice is one. */
  plan(job: Omit<Job, 'id'> & { readonly id?: string }, { inSeconds }: { readonly inSeconds: number }) {
    const { scripts, keys } = this.#options;
    return scripts.run(plan, { scheduled: keys.scheduledJobs() }, { member: formatJob(job), in_seconds: inSeconds });
  }

  /** Does what is due and nobody else does. */
  async runDueOnce(signal: AbortSignal = new AbortController().signal): Promise<RunCounts> {
    await this.#planPeriodic();
    await this.#promote();
    let [ran, failed] = [0, 0];
    for (const type of this.#types()) {
      const queue = this.#options.keys.jobQueue(type);
      const { now, members } = await this.#options.scripts.run(due, { queue }, { limit: BATCH });
      for (const member of members) {
        if (signal.aborted) return { ran, failed };
        const outcome = await this.#runOne(type, member, now, signal);
        ran += Number(outcome !== 'elsewhere');
        failed += Number(outcome === 'failed');
      }
    }
    return { ran, failed };
  }

  async #runOne(type: JobType, member: string, now: number, signal: AbortSignal) {
    const { connection, keys, scripts, handlers } = this.#options;
    const [redis, queue, job, handler] = [connection.commands, keys.jobQueue(type), parseJob(member), handlers[type]];
    if (!job || !handler) return this.#drop(queue, member);
    const lock = keys.jobLock(job.id);
    if (!(await redis.set(lock, this.#worker, 'PX', handler.limitMs, 'NX'))) return 'elsewhere';
    try {
      // Between our look and the lock someone may have done it: then it is in the queue no more.
      if ((await redis.zscore(queue, member)) === null) return 'elsewhere';
      const done = await this.#attempt(job, handler, signal);
      if (!done && !handler.everySeconds) {
        await redis.zadd(queue, 'XX', now + RETRY_SECONDS, member);
        return 'failed';
      }
      // The next time is planned before this one is crossed off, so that a crash between loses nothing.
      if (isPeriodic(job) && handler.everySeconds) {
        await redis.zadd(keys.scheduledJobs(), now + (await handler.everySeconds()), member);
      }
      await redis.zrem(queue, member);
      return done ? 'done' : 'failed';
    } finally {
      await scripts.run(unlock, { lock }, { worker: this.#worker });
    }
  }

  async #attempt(job: Job, { run, limitMs }: Handler, signal: AbortSignal): Promise<boolean> {
    try {
      await run(job, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]));
      return true;
    } catch (error) {
      this.#options.log.warn('a job failed', { type: job.type, job: job.id, problem: reason(error) });
      return false;
    }
  }

  async #drop(queue: string, member: string) {
    this.#options.log.warn('dropped from a job queue: not a job', { queue, member: member.slice(0, 200) });
    await this.#options.connection.commands.zrem(queue, member);
    return 'failed';
  }

  /** A periodic job is always in the plan or in its queue; looked for in this order it is never missed on its way. */
  async #planPeriodic(): Promise<void> {
    const { connection, keys } = this.#options;
    const redis = connection.commands;
    for (const type of this.#types().filter((one) => this.#options.handlers[one]?.everySeconds)) {
      const member = formatJob(periodic(type));
      if ((await redis.zscore(keys.scheduledJobs(), member)) !== null) continue;
      if ((await redis.zscore(keys.jobQueue(type), member)) !== null) continue;
      await this.plan(periodic(type), { inSeconds: 0 });
    }
  }

  async #promote(): Promise<void> {
    const { connection, keys, scripts, log } = this.#options;
    const scheduled = keys.scheduledJobs();
    const refused =
      connection.mode === 'cluster'
        ? await this.#promoteAcrossSlots(scheduled)
        : await scripts.run(
            promote,
            { scheduled, queues: JOB_TYPES.map((type) => keys.jobQueue(type)) },
            { limit: BATCH },
          );
    for (const member of refused) log.warn('dropped from the plan: not a job', { member: member.slice(0, 200) });
  }

  /** Plan and queue cannot be changed together there. Added before removed: a crash between leaves it in both. */
  async #promoteAcrossSlots(scheduled: string): Promise<string[]> {
    const { connection, keys, scripts } = this.#options;
    const redis = connection.commands;
    const { now, members } = await scripts.run(due, { queue: scheduled }, { limit: BATCH });
    for (const member of members) {
      const job = parseJob(member);
      if (job) await redis.zadd(keys.jobQueue(job.type), 'NX', now, member);
      await redis.zrem(scheduled, member);
    }
    return members.filter((member) => !parseJob(member));
  }

  #types(): JobType[] {
    return JOB_TYPES.filter((type) => this.#options.handlers[type] !== undefined);
  }
}

const periodic = (type: JobType): Job => ({ type, id: type });
const isPeriodic = ({ type, id }: Job): boolean => id === type;

/** Looks for due jobs as long as the daemon runs. */
export const jobRunner = (jobs: Jobs, { clock, log }: Pick<JobsOptions, 'clock' | 'log'>): Service =>
  every('jobs', {
    clock,
    pauseMs: () => jittered(POLL_MS),
    tick: (signal) => jobs.runDueOnce(signal),
    onError: (error) => log.warn('looking for jobs failed', { problem: reason(error) }),
  });
