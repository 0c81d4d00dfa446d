import { randomUUID } from 'node:crypto';
import { type Clock, jittered } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { every, type Service } from '../service.ts';
import { formatJob, JOB_TYPES, type Job, type JobType, parseJob } from './job.ts';
import { due, hasten, plan, type Turn, turn, unlock } from './scripts.ts';

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
  /** Again and again, once each period among all daemons; what is planned besides comes on top. Asked after each time. */
  readonly everySeconds?: () => number | Promise<number>;
  /** After so long another daemon may take it for dead and do it again. */
  readonly limitMs: number;
  readonly run: (job: Job, signal: AbortSignal) => Promise<unknown>;
  /** Where each project has work of its own: the name of its periodic job, and which others are its own. The rest is left alone. */
  readonly own?: { readonly id: string; readonly isOwn: (job: Job) => boolean };
}

export interface RunCounts {
  readonly ran: number;
  readonly failed: number;
}

const BATCH = 100;
const RETRY_SECONDS = 10;
/** A raw client may plan something at any time; nobody tells us. */
const LONGEST_MS = 1_000;
const BUSY_MS = 250;

/**
 * Work that is due at a time, shared by all daemons on one Redis. A job is in the plan until it is due and in the queue
 * of its type until it is done; whoever does it holds its job lock meanwhile. A daemon that dies leaves the job in the
 * queue, and the lock runs out: at least once, and in one place at a time.
 */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #worker: string;
  readonly #periodic: Readonly<Record<string, string>>;
  readonly #plannedFor = new Map<JobType, number>();
  #restMs = 0;

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#worker = options.worker ?? randomUUID();
    const periodicTypes = this.#types().filter((type) => options.handlers[type]?.everySeconds);
    this.#periodic = Object.fromEntries(periodicTypes.map((type) => [type, formatJob(this.#periodicJob(type))]));
  }

  /** Plans a job; the same one planned twice is one. */
  plan(job: Omit<Job, 'id'> & { readonly id?: string }, { inSeconds }: { readonly inSeconds: number }) {
    const { scripts, keys } = this.#options;
    return scripts.run(plan, { scheduled: keys.scheduledJobs() }, { member: formatJob(job), in_seconds: inSeconds });
  }

  /** Periodic work is wanted sooner than this daemon planned it. Costs nothing if it is not; in vain it comes when planned. */
  hurry(type: JobType, { inSeconds }: { readonly inSeconds: number }): void {
    const { scripts, keys, clock, log } = this.#options;
    const at = clock.now() + inSeconds * 1000;
    // Whoever was before us may have planned it for any time.
    if ((this.#plannedFor.get(type) ?? Number.POSITIVE_INFINITY) <= at) return;
    this.#plannedFor.set(type, at);
    const args = { member: formatJob(this.#periodicJob(type)), in_seconds: inSeconds };
    scripts.run(hasten, { scheduled: keys.scheduledJobs() }, args).catch((error: unknown) => {
      log.debug('a job was not brought forward', { type, problem: reason(error) });
    });
  }

  /** How long nothing will be due, as far as one can know. */
  get restMs(): number {
    return this.#restMs;
  }

  /** Does what is due and nobody else does. */
  async runDueOnce(signal: AbortSignal = new AbortController().signal): Promise<RunCounts> {
    this.#restMs = BUSY_MS;
    const { now, nextSeconds, refused, due: found } = await this.#turn();
    for (const member of refused)
      this.#options.log.warn('dropped from the plan: not a job', { member: member.slice(0, 200) });
    let [ran, failed] = [0, 0];
    const mine = found
      .map(([type, members]) => [type, members.filter((member) => this.#isOwn(type, member))] as const)
      .filter(([, members]) => members.length > 0);
    for (const [type, members] of mine) {
      for (const member of members) {
        if (signal.aborted) return { ran, failed };
        const outcome = await this.#runOne(type, member, now, signal);
        ran += Number(outcome !== 'elsewhere');
        failed += Number(outcome === 'failed');
      }
    }
    if (mine.length === 0) this.#restMs = Math.min(LONGEST_MS, (nextSeconds ?? LONGEST_MS) * 1000);
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
      if (handler.everySeconds && job.id === this.#periodicJob(type).id) {
        const seconds = await handler.everySeconds();
        await redis.zadd(keys.scheduledJobs(), now + seconds, member);
        this.#plannedFor.set(type, this.#options.clock.now() + seconds * 1000);
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

  #turn(): Promise<Turn> {
    const { connection, keys, scripts } = this.#options;
    if (connection.mode === 'cluster') return this.#turnAcrossSlots();
    const all = { scheduled: keys.scheduledJobs(), queues: JOB_TYPES.map((type) => keys.jobQueue(type)) };
    return scripts.run(turn, all, { periodic: this.#periodic, limit: BATCH });
  }

  /** Plan and queues cannot be changed together there. Added before removed: a crash between leaves a job in both. */
  async #turnAcrossSlots(): Promise<Turn> {
    const { connection, keys, scripts } = this.#options;
    const [redis, scheduled] = [connection.commands, keys.scheduledJobs()];
    // Looked for in this order a job is never missed on its way.
    for (const [type, member] of Object.entries(this.#periodic) as [JobType, string][]) {
      if ((await redis.zscore(scheduled, member)) !== null) continue;
      if ((await redis.zscore(keys.jobQueue(type), member)) !== null) continue;
      await this.plan(this.#periodicJob(type), { inSeconds: 0 });
    }
    const { now, members } = await scripts.run(due, { queue: scheduled }, { limit: BATCH });
    for (const member of members) {
      const job = parseJob(member);
      if (job) await redis.zadd(keys.jobQueue(job.type), 'NX', now, member);
      await redis.zrem(scheduled, member);
    }
    const looked = this.#types().map(async (type) => {
      const queue = keys.jobQueue(type);
      return [type, (await scripts.run(due, { queue }, { limit: BATCH })).members] as const;
    });
    const found = (await Promise.all(looked)).filter(([, those]) => those.length > 0);
    return { now, nextSeconds: undefined, refused: members.filter((member) => !parseJob(member)), due: found };
  }

  #periodicJob(type: JobType): Job {
    return { type, id: this.#options.handlers[type]?.own?.id ?? type };
  }

  #isOwn(type: JobType, member: string): boolean {
    const handler = this.#options.handlers[type];
    const job = handler?.own && parseJob(member);
    return handler !== undefined && (!job || job.id === handler.own?.id || handler.own.isOwn(job));
  }

  #types(): JobType[] {
    return JOB_TYPES.filter((type) => this.#options.handlers[type] !== undefined);
  }
}

/** Looks for due jobs as long as the daemon runs. */
export const jobRunner = (jobs: Jobs, { clock, log }: Pick<JobsOptions, 'clock' | 'log'>): Service =>
  every('jobs', {
    clock,
    // A little later, and not all daemons at once.
    pauseMs: () => jobs.restMs + jittered(20),
    isExact: true,
    tick: (signal) => jobs.runDueOnce(signal),
    onError: (error) => log.warn('looking for jobs failed', { problem: reason(error) }),
  });
