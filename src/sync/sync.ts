import type { Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import { compareIds } from '../events/cursor.ts';
import type { EventLog } from '../events/event-log.ts';
import type { Logger } from '../log.ts';
import { redisFailure } from '../redis/failure.ts';
import type { Quota } from './github-client.ts';
import type { RunRecord, ToldHold } from './run-record.ts';
import type { SourceRecord } from './source-record.ts';
import { type Asked, type RunnerOptions, type Running, SourceRunner, type Ticket } from './source-runner.ts';

/** One source and all that a sync of it needs, but for what the sync room itself adds. */
export type SyncedSource = Omit<RunnerOptions, 'onProgress' | 'onEnd' | 'clock' | 'log'> & {
  /** What is left of the hourly requests, where there is such a limit. */
  readonly quotas?: (() => readonly Quota[]) | undefined;
};

export interface SyncOptions {
  readonly sources: readonly SyncedSource[];
  readonly events?: EventLog | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface SourceStatus extends SourceRecord {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly kind: string;
  readonly address: string;
  readonly commit?: string | undefined;
  readonly synced_at?: string | undefined;
  readonly assets: number;
  readonly errors: number;
  readonly degraded: boolean;
  readonly running?: Running | undefined;
  readonly quota?:
    | { readonly resource: string; readonly limit: number; readonly remaining: number; readonly reset_at: string }
    | undefined;
}

export type SyncNews =
  | { readonly kind: 'progress'; readonly source: string; readonly running: Running }
  | { readonly kind: 'ended'; readonly run: RunRecord };

/** How assets get here: the room's outside. */
export class Sync {
  readonly #options: SyncOptions;
  readonly #runners: ReadonlyMap<string, SourceRunner>;
  readonly #listeners = new Set<(news: SyncNews) => void>();

  constructor(options: SyncOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#runners = new Map(
      options.sources.map((one) => [
        one.named.name,
        new SourceRunner({
          ...one,
          clock,
          log,
          onProgress: (source, running) => this.#tell({ kind: 'progress', source, running }),
          onEnd: (run) => this.#ended(run),
        }),
      ]),
    );
  }

  names(): readonly string[] {
    return [...this.#runners.keys()];
  }

  runner(name: string): SourceRunner {
    const found = this.#runners.get(name);
    if (!found) throw new ReeveError('NO_SUCH_SOURCE', { name, known: this.names().join(', ') });
    return found;
  }

  /** Asks for a sync of one source, or of all. It is under way when this returns. */
  ask(source: string | undefined, asked: Asked): readonly Ticket[] {
    const runners = source === undefined ? [...this.#runners.values()] : [this.runner(source)];
    return runners.map((runner) => runner.ask(asked));
  }

  listen(listener: (news: SyncNews) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async status(): Promise<readonly SourceStatus[]> {
    return Promise.all(this.#options.sources.map((one) => this.#statusOf(one)));
  }

  statusOf(name: string): Promise<SourceStatus> {
    const { named } = this.runner(name);
    return this.#statusOf(this.#options.sources.find((one) => one.named === named)!);
  }

  async runs(limit: number): Promise<readonly RunRecord[]> {
    const all = await Promise.all([...this.#runners.values()].map(({ records }) => records.runs(limit)));
    return all
      .flat()
      .sort((a, b) => b.started_at.localeCompare(a.started_at))
      .slice(0, limit);
  }

  /** What syncs did to assets, newest first. */
  async changes(limit: number): Promise<readonly (ReeveEvent & { readonly in: string })[]> {
    const all = await Promise.all(
      [...this.#runners].map(async ([name, { records }]) =>
        (await records.changes(limit)).map((event) => ({ ...event, in: name })),
      ),
    );
    return all
      .flat()
      .sort((a, b) => compareIds(b.id, a.id))
      .slice(0, limit);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.stop()));
  }

  async #statusOf({ named, registry, quotas }: SyncedSource): Promise<SourceStatus> {
    const { records, running } = this.runner(named.name);
    const [record, state] = await Promise.all([records.read(), registry.state()]);
    const { last_sync_time: at, last_commit_sha: commit } = state;
    const quota = quotas?.().find(({ resource }) => resource === 'core');
    return {
      ...record,
      name: named.name,
      ...(named.namespace !== undefined && { namespace: named.namespace }),
      kind: named.source.kind,
      address: named.source.address,
      ...(commit !== undefined && { commit }),
      ...(at !== undefined && { synced_at: new Date(at * 1000).toISOString() }),
      assets: state.synced_count,
      errors: state.error_count,
      degraded: state.degraded,
      ...(running && { running }),
      ...(quota && {
        quota: { ...quota, reset_at: new Date(quota.resetAt).toISOString() },
      }),
    };
  }

  #ended(run: RunRecord): void {
    this.#tell({ kind: 'ended', run });
    const { source, outcome, commit, counts, problem, took_ms } = run;
    const { log } = this.#options;
    if (outcome === 'published') log.info('assets synced', { source, commit, ...counts, tookMs: took_ms });
    if (outcome === 'repaired') log.warn('assets repaired', { source, ids: run.repaired });
    for (const hold of heldBy(run)) log.warn('a change waits for a person', { source, ...hold });
    if (outcome === 'failed') log.warn('sync failed', { source, code: problem?.code, problem: problem?.message });
    void this.#announce(run);
  }

  async #announce(run: RunRecord): Promise<void> {
    const { source, outcome, commit, counts, problem, dry_run } = run;
    const { events, log } = this.#options;
    if (!events || dry_run) return;
    try {
      if (outcome === 'published') await events.append('sync:published', { source, commit: commit ?? '', ...counts });
      for (const { id, says } of heldBy(run)) await events.append('sync:held', { source, hold: id, says });
      if (outcome === 'failed')
        await events.append('sync:failed', { source, code: problem?.code ?? '', problem: problem?.message ?? '' });
    } catch (error) {
      log.debug('event not written', { problem: reason(redisFailure(error, '') ?? error) });
    }
  }

  #tell(news: SyncNews): void {
    for (const listener of this.#listeners) listener(news);
  }
}

/** What waits for a person since this sync: all of it, or parts. */
const heldBy = ({ hold, holds = [] }: RunRecord): readonly ToldHold[] => (hold ? [hold] : holds);
