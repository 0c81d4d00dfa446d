import { randomUUID } from 'node:crypto';
import { backOff, type Clock, isoTime } from '../clock.ts';
import { asReeveError, ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import { redisFailure } from '../redis/failure.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { ParsePool } from '../registry/parse-pool.ts';
import type { Registry } from '../registry/registry.ts';
import { type Progress, reconcile, type SyncOutcome } from './reconciler.ts';
import { problemOf, type RunRecord, type Trigger, toldOf } from './run-record.ts';
import type { NamedSource } from './source.ts';
import { SourceRecords } from './source-record.ts';
import { stateOf } from './source-state.ts';
import { takeSyncLock } from './sync-lock.ts';

export interface Asked {
  readonly trigger: Trigger;
  readonly full?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  /** Take whatever repository answers now for the right one. */
  readonly acceptSource?: boolean | undefined;
  /** A commit that a webhook told of. */
  readonly barrier?: string | undefined;
}

/** A sync that was asked for: its number, and how it will have ended. It never rejects. */
export interface Ticket {
  readonly id: string;
  readonly done: Promise<RunRecord>;
}

export interface Running extends Progress {
  readonly id: string;
  readonly trigger: Trigger;
  readonly started_at: string;
}

export interface RunnerOptions {
  readonly named: NamedSource;
  readonly registry: Registry;
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly pool: ParsePool;
  /** Who syncs, for people. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onProgress: (source: string, running: Running) => void;
  readonly onEnd: (run: RunRecord) => void;
}

const LAG_TRIES = 6;

interface Waiting {
  asked: Asked;
  readonly id: string;
  readonly promise: Promise<RunRecord>;
  readonly resolve: (run: RunRecord) => void;
}

/** Syncs one source, one sync at a time. However many ask while one runs, one more follows and serves them all. */
export class SourceRunner {
  readonly records: SourceRecords;
  readonly #options: RunnerOptions;
  readonly #waiting: Waiting[] = [];
  readonly #over = new AbortController();
  readonly #token = randomUUID();
  #running: Running | undefined;
  #loop: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const { connection, keys, named } = options;
    this.records = new SourceRecords(connection, keys, { name: named.name, address: named.source.address });
  }

  get named(): NamedSource {
    return this.#options.named;
  }

  get running(): Running | undefined {
    return this.#running;
  }

  ask(asked: Asked): Ticket {
    const same = this.#waiting.find((one) => !one.asked.dryRun && !asked.dryRun);
    if (same) {
      same.asked = merged(same.asked, asked);
      return { id: same.id, done: same.promise };
    }
    const { promise, resolve } = Promise.withResolvers<RunRecord>();
    const waiting: Waiting = { asked, id: randomUUID(), promise, resolve };
    this.#waiting.push(waiting);
    this.#loop ??= this.#work();
    return { id: waiting.id, done: promise };
  }

  /** Stops what runs, at the next place where nothing is half done, and takes nothing more. */
  async stop(): Promise<void> {
    this.#over.abort(new Error('the daemon stops'));
    await this.#loop;
  }

  async #work(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const run = await this.#runOne(next);
      next.resolve(run);
      this.#options.onEnd(run);
      const { barrier } = next.asked;
      // GitHub may show a commit before the one that the webhook told of; the rest must not wait for the schedule.
      if (barrier && run.outcome === 'published' && run.commit !== barrier) this.ask({ trigger: 'webhook', barrier });
    }
    // In the same turn as the last look at the queue: who asks later must find no loop that has ended.
    this.#loop = undefined;
  }

  /** Whether an earlier commit is part of the history of this one; no where nobody can tell. */
  async #isPast(commit: string | undefined, earlier: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (commit === undefined || earlier === undefined) return false;
    const asked = this.named.source.confirm(commit, { previous: earlier, signal });
    return asked.then(
      ({ descends }) => descends === true,
      () => false,
    );
  }

  async #runOne({ id, asked }: Waiting): Promise<RunRecord> {
    const { clock, named, log, connection } = this.#options;
    const began = clock.now();
    const started_at = isoTime(clock);
    this.#tell({ id, trigger: asked.trigger, started_at, phase: 'resolve', done: 0, total: 1 });
    const about = {
      id,
      source: named.name,
      trigger: asked.trigger,
      dry_run: asked.dryRun ?? false,
      full: asked.full ?? false,
    };
    const finish = (told: Pick<RunRecord, 'outcome'> & Partial<RunRecord>): RunRecord => ({
      ...about,
      started_at,
      took_ms: clock.now() - began,
      ...told,
    });
    let run: RunRecord;
    try {
      const outcome = await this.#underLock(asked, { id, trigger: asked.trigger, started_at });
      run = finish(toldOf(outcome));
      await this.#well(run, outcome, asked);
    } catch (thrown) {
      const error = redisFailure(thrown, connection.address) ?? asReeveError(thrown);
      if (error.code === 'INTERNAL' && !this.#over.signal.aborted)
        log.error('a sync failed', { source: named.name, problem: stackOf(thrown) });
      const isOver = this.#over.signal.aborted;
      const outcome = isOver ? 'cancelled' : error.code === 'SYNC_BUSY' ? 'busy' : 'failed';
      run = finish({ outcome, ...(!isOver && { problem: problemOf(error) }) });
      if (outcome === 'failed')
        await this.#unwell(run, error, asked).catch((also: unknown) =>
          log.warn('sync state not written', { problem: reason(also) }),
        );
    } finally {
      this.#running = undefined;
    }
    return run;
  }

  async #underLock(asked: Asked, about: Pick<Running, 'id' | 'trigger' | 'started_at'>): Promise<SyncOutcome> {
    const { connection, keys, holder, clock, log, named } = this.#options;
    const answer = await takeSyncLock({ connection, keys, holder, token: this.#token, clock, log });
    if (answer.outcome === 'held') {
      throw new ReeveError('SYNC_BUSY', { source: named.name, holder: answer.holder, since: answer.since });
    }
    await using lock = answer.lock;
    const signal = AbortSignal.any([this.#over.signal, lock.lost]);
    try {
      return await this.#untilSeen(asked, lock.fence, signal, about);
    } catch (error) {
      if (!asked.dryRun) await this.#failed(error, lock.fence);
      throw error;
    }
  }

  /**
   * The API may lag behind the webhook: "unchanged" is not believed at once when a push was told of, unless the branch is
   * past that push already, as after an old delivery that was sent again.
   */
  async #untilSeen(
    asked: Asked,
    fence: number,
    signal: AbortSignal,
    about: Pick<Running, 'id' | 'trigger' | 'started_at'>,
  ): Promise<SyncOutcome> {
    const { named, registry, pool, clock } = this.#options;
    const { identity } = await this.records.read();
    const onProgress = (progress: Progress) => this.#tell({ ...about, ...progress });
    const question = { ...asked, identity: asked.acceptSource ? undefined : identity };
    for (let attempt = 0; ; attempt++) {
      const outcome = await reconcile({ named, registry, pool, fence, signal, onProgress }, question);
      if (outcome.outcome !== 'lagging' || attempt >= LAG_TRIES) return outcome;
      if (attempt === 0 && (await this.#isPast(outcome.commit, asked.barrier, signal))) return outcome;
      await clock.sleep(backOff(attempt, 500, 8_000), signal);
      signal.throwIfAborted();
    }
  }

  async #failed(error: unknown, fence: number): Promise<void> {
    const { registry, log } = this.#options;
    const status = this.#over.signal.aborted
      ? ({ sync_status: 'idle', fence } as const)
      : ({ sync_status: 'failed', last_error: asReeveError(error).message, fence } as const);
    await registry
      .mark(status)
      .catch((also: unknown) => log.debug('sync status not written', { problem: reason(also) }));
  }

  /** Written once, at the end. A poll that found nothing new leaves no run behind. */
  async #well(run: RunRecord, outcome: SyncOutcome, asked: Asked): Promise<void> {
    if (asked.dryRun) return this.records.addRun(run);
    const [before, holds] = await Promise.all([this.records.read(), this.#options.registry.holds()]);
    const state = holds.some(({ released }) => !released) ? 'held' : 'idle';
    const now = isoTime(this.#options.clock);
    const identity = outcome.identity ?? before.identity;
    const since = before.state === state ? before.since : now;
    await this.records.write({ identity, state, since, failures: 0, checked_at: now, next_at: before.next_at });
    if (run.outcome !== 'unchanged' || asked.trigger === 'manual') await this.records.addRun(run);
  }

  async #unwell(run: RunRecord, error: ReeveError, asked: Asked): Promise<void> {
    if (asked.dryRun) return this.records.addRun(run);
    const before = await this.records.read();
    const state = stateOf(error.code);
    const now = isoTime(this.#options.clock);
    const isSame = before.state === state;
    const { identity, failures } = before;
    await this.records.write({
      identity,
      state,
      since: isSame ? before.since : now,
      failures: failures + 1,
      checked_at: now,
      next_at: before.next_at,
      problem: problemOf(error),
    });
    if (!isSame || asked.trigger === 'manual') await this.records.addRun(run);
  }

  #tell(running: Running): void {
    this.#running = running;
    this.#options.onProgress(this.named.name, running);
  }
}

const merged = (a: Asked, b: Asked): Asked => ({
  trigger: a.trigger === 'manual' || b.trigger === 'manual' ? 'manual' : b.trigger,
  full: a.full || b.full,
  acceptSource: a.acceptSource || b.acceptSource,
  barrier: b.barrier ?? a.barrier,
});

const stackOf = (thrown: unknown): string =>
  thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
