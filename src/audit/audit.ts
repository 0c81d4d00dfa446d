import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Store } from '../store/database.ts';
import { type Break, follow, type Head, type Links, START } from './chain.ts';
import type { AuditEntry } from './entry.ts';

export interface AuditOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly store: Store;
}

export interface Filter {
  readonly task?: string | undefined;
  readonly user?: string | undefined;
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface Range extends Filter {
  /** Rows after this number, oldest first; without it the newest, oldest of them first. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** A row as it is read back: the record, and how it is chained. */
export type AuditItem = AuditEntry & { readonly seq: number; readonly source_id: string; readonly hash: string };

export interface Verdict {
  readonly ok: boolean;
  readonly rows: number;
  /** As far as the chain is good. */
  readonly head: Head;
  readonly broken?: Break;
  /** The head that was kept outside the store, if there is one to compare with. */
  readonly kept?: Head;
}

/** Each page costs a query, and holds up whatever else the daemon does for as long as it is read: some milliseconds. */
const PAGE = 5_000;

/** The audit log as the store has it. Nobody writes it but the drain. */
export class Audit {
  readonly #options: AuditOptions;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  async list({ after, limit, ...filter }: Range): Promise<AuditItem[]> {
    let query = this.#options.store.db.selectFrom('audit_log').select(['record', 'hash']);
    if (filter.task !== undefined) query = query.where('task_id', '=', filter.task);
    if (filter.user !== undefined) query = query.where('user_id', '=', filter.user);
    if (filter.action !== undefined) query = query.where('action', '=', filter.action);
    if (filter.subject !== undefined) query = query.where('subject', '=', filter.subject);
    if (filter.since !== undefined) query = query.where('at', '>=', filter.since);
    if (filter.until !== undefined) query = query.where('at', '<', filter.until);
    const rows = await (after === undefined
      ? query.orderBy('seq', 'desc').limit(limit)
      : query.where('seq', '>', after).orderBy('seq', 'asc').limit(limit)
    ).execute();
    const items = rows.map(({ record, hash }) => ({ ...(JSON.parse(record) as AuditItem), hash }));
    return after === undefined ? items.toReversed() : items;
  }

  /** How many rows wait in Redis. */
  async waiting(): Promise<number> {
    const { connection, keys } = this.#options;
    return connection.commands.xlen(keys.auditOutbox());
  }

  /** The head as the drain left it in Redis; none if Redis lost it. */
  async kept(): Promise<Head | undefined> {
    const { connection, keys } = this.#options;
    const { seq, hash } = await connection.commands.hgetall(keys.auditHead());
    return seq !== undefined && hash !== undefined ? { seq: Number(seq), hash } : undefined;
  }

  /**
   * Follows the whole chain and names the first row that does not fit. A chain whose end was cut off, or that was made anew, is good in
   * itself: it is compared with heads that were kept elsewhere.
   */
  async verify(heads: readonly Head[], signal?: AbortSignal): Promise<Verdict> {
    const kept = heads.toSorted((a, b) => a.seq - b.seq);
    const newest = kept.at(-1);
    let head = START;
    const verdict = (broken?: Break): Verdict => ({
      ok: broken === undefined,
      rows: head.seq,
      head,
      ...(broken && { broken }),
      ...(newest && { kept: newest }),
    });
    for (;;) {
      signal?.throwIfAborted();
      const first = head.seq + 1;
      const links = await this.#page(head.seq);
      const { head: reached, broken } = follow(head, links);
      head = reached;
      if (broken) return verdict(broken);
      const replaced = kept.find(({ seq, hash }) => (links.hashes[seq - first] ?? hash) !== hash);
      if (replaced) return verdict({ seq: replaced.seq, problem: REPLACED });
      if (links.records.length < PAGE) break;
    }
    if (newest && newest.seq > head.seq) {
      const problem = `the log ends at ${head.seq}, but it had ${newest.seq} rows: its tail was cut off`;
      return verdict({ seq: head.seq + 1, problem });
    }
    return verdict();
  }

  /**
   * The next rows. As many as there are numbers are all of them, one after the other, so that nobody need read their numbers: of a
   * long log that is most of what could be saved. Where some are missing, or the log ends, the numbers say it.
   */
  async #page(after: number): Promise<Links> {
    const { store } = this.#options;
    const rows = store.db.selectFrom('audit_log').where('seq', '>', after).orderBy('seq');
    const whole = rows.where('seq', '<=', after + PAGE);
    const records = await store.column(whole.select('record'));
    const hashes = records.length === PAGE ? await store.column(whole.select('hash')) : [];
    if (hashes.length === PAGE) return { records, hashes };
    const numbered = await rows.limit(PAGE).select(['seq', 'record', 'hash']).execute();
    return {
      records: numbered.map(({ record }) => record),
      hashes: numbered.map(({ hash }) => hash),
      numbers: numbered.map(({ seq }) => seq),
    };
  }
}

const REPLACED = 'its hash is not the one that was kept: the chain was made anew, at the latest from here';
