import { ERRORS, type ErrorCode } from '../error-catalogue.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import { decodeEntry } from '../events/entry.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { RunProblem, RunRecord } from './run-record.ts';
import { SOURCE_STATES, type SourceState } from './source-state.ts';

/** How a source is, as asset:sync:source keeps it. */
export interface SourceRecord {
  readonly identity?: string | undefined;
  readonly state: SourceState;
  readonly since: string;
  readonly failures: number;
  readonly checked_at?: string | undefined;
  readonly next_at?: string | undefined;
  readonly problem?: RunProblem | undefined;
}

const KEPT_RUNS = 200;

/** The part of Redis in which a source keeps how it is and what was done with it. */
export class SourceRecords {
  readonly #connection: Connection;
  readonly #keys: Keyspace;
  readonly #of: { readonly name: string; readonly address: string };

  constructor(connection: Connection, keys: Keyspace, of: { readonly name: string; readonly address: string }) {
    this.#connection = connection;
    this.#keys = keys;
    this.#of = of;
  }

  async read(): Promise<SourceRecord> {
    const fields = await this.#connection.commands.hgetall(this.#keys.assetSyncSource());
    const { state = '', since = '', failures = '0', problem } = fields;
    return {
      // What another source left behind under this namespace says nothing about this one.
      identity: fields.address === this.#of.address ? fields.identity : undefined,
      state: state in SOURCE_STATES ? (state as SourceState) : 'new',
      since,
      failures: Number(failures),
      checked_at: fields.checked_at,
      next_at: fields.next_at,
      problem: problem ? readProblem(problem) : undefined,
    };
  }

  async write({
    identity,
    state,
    since,
    failures,
    checked_at = '',
    next_at = '',
    problem,
  }: SourceRecord): Promise<void> {
    const key = this.#keys.assetSyncSource();
    const fields = {
      ...this.#of,
      ...(identity !== undefined && { identity }),
      state,
      since,
      failures,
      checked_at,
      next_at,
      ...(problem && { problem: JSON.stringify(problem) }),
    };
    await this.#connection.commands.multi().del(key).hset(key, fields).exec();
  }

  /** When it will be asked next. */
  async setNext(at: string): Promise<void> {
    await this.#connection.commands.hset(this.#keys.assetSyncSource(), { next_at: at });
  }

  async addRun(run: RunRecord): Promise<void> {
    const key = this.#keys.assetSyncRuns();
    await this.#connection.commands
      .multi()
      .lpush(key, JSON.stringify(run))
      .ltrim(key, 0, KEPT_RUNS - 1)
      .exec();
  }

  /** The newest changes of assets, newest first. The common stream also tells of other namespaces. */
  async changes(limit: number): Promise<ReeveEvent[]> {
    const own: ReeveEvent[] = [];
    for (let before = '+'; own.length < limit; ) {
      const { commands } = this.#connection;
      const entries = await commands.xrevrange(this.#keys.assetSyncEvents(), before, '-', 'COUNT', limit);
      const events = entries.map(([id, flat]) => decodeEntry('sync', id, flat));
      own.push(...events.filter(({ payload }) => payload.namespace === undefined));
      if (entries.length < limit) break;
      before = `(${entries.at(-1)![0]}`;
    }
    return own.slice(0, limit);
  }

  async runs(limit: number): Promise<RunRecord[]> {
    const texts = await this.#connection.commands.lrange(this.#keys.assetSyncRuns(), 0, limit - 1);
    return texts.map((text) => JSON.parse(text) as RunRecord);
  }
}

function readProblem(text: string): SourceRecord['problem'] {
  const found = JSON.parse(text) as { code: string; message: string; next: string };
  return found.code in ERRORS ? { ...found, code: found.code as ErrorCode } : undefined;
}
