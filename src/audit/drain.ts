import type { Kysely } from 'kysely';
import { type Clock, isoTime, jittered } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { every, type Service } from '../service.ts';
import type { Store } from '../store/database.ts';
import type { Tables } from '../store/schema.ts';
import { canonicalJson, type Head, linkHash, START } from './chain.ts';
import type { AuditEntry } from './entry.ts';
import { readOutbox, trimOutbox, type Waiting } from './outbox.ts';

export interface DrainOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Who drains: one name for each life of a daemon. */
  readonly worker: string;
}

const PERIOD_MS = 1_000;
const BATCH = 1_000;
const JOB = 'audit-drain';
/** After so long another daemon may take it for dead. Two at once would collide on the number of a row, and one would lose. */
const HOLD_MS = 60_000;
const TELL_HEAD_MS = 60_000;

/** Copies audit rows to the store, one daemon at a time. Rows lie in Redis, untrimmed, for as long as it cannot. */
export function auditDrain(options: DrainOptions): Service {
  let isFailing = false;
  let told = 0;
  return every('audit drain', {
    clock: options.clock,
    pauseMs: () => jittered(PERIOD_MS),
    tick: async (signal) => {
      // A look costs next to nothing; the lock and the transaction do not.
      const drained: Drained = (await isAnything(options)) ? await drainAlone(options, signal) : { rows: 0 };
      if (isFailing) options.log.info('draining the audit works again');
      isFailing = false;
      const isTime = options.clock.now() - told >= TELL_HEAD_MS;
      if (drained.rows > 0 && isTime && drained.head) {
        // Kept by whoever keeps the log: a chain that was replaced as a whole fits no older head.
        options.log.info('audit head', { seq: drained.head.seq, hash: drained.head.hash });
        told = options.clock.now();
      }
    },
    onError: (error) => {
      if (!isFailing) options.log.warn('draining the audit failed, trying again', { problem: reason(error) });
      isFailing = true;
    },
  });
}

async function isAnything({ connection, keys, store }: DrainOptions): Promise<boolean> {
  if ((await connection.commands.xlen(keys.auditOutbox())) > 0) return true;
  return (await store.db.selectFrom('audit_intake').select('id').limit(1).executeTakeFirst()) !== undefined;
}

export interface Drained {
  readonly rows: number;
  readonly head?: Head;
}

/** Drains if no other daemon does. */
export async function drainAlone(options: DrainOptions, signal?: AbortSignal): Promise<Drained> {
  const { connection, keys, worker } = options;
  const lock = keys.jobLock(JOB);
  const redis = connection.commands;
  if (!(await redis.set(lock, worker, 'PX', HOLD_MS, 'NX'))) return { rows: 0 };
  try {
    return await drainOnce(options, signal);
  } finally {
    if ((await redis.get(lock)) === worker) await redis.del(lock);
  }
}

/**
 * Copies all that waits and returns how much. The rows commit before they are taken from the outbox: a crash between leaves them in
 * both, and the next drain knows them by their ids.
 */
export async function drainOnce(options: DrainOptions, signal?: AbortSignal): Promise<Drained> {
  let rows = 0;
  let head: Head | undefined;
  for (let more = true; more && !signal?.aborted; ) {
    const batch = await drainBatch(options);
    rows += batch.rows;
    head = batch.head ?? head;
    more = batch.isFull;
  }
  if (!head) return { rows };
  const { connection, keys, clock } = options;
  await connection.commands.hset(keys.auditHead(), { ...head, at: isoTime(clock) });
  return { rows, head };
}

async function drainBatch({ connection, keys, store }: DrainOptions) {
  const { rows: waiting, last: lastEntry, isFull } = await readOutbox(connection, keys, BATCH);
  const { added, taken, head } = await store.db.transaction().execute(async (tx) => {
    const intake = await tx.selectFrom('audit_intake').selectAll().orderBy('id').limit(BATCH).execute();
    const fresh = await withoutKnown(tx, waiting);
    const here = intake.map(({ id, body }): Waiting => ({ id: `intake-${id}`, entry: JSON.parse(body) as AuditEntry }));
    const rows = [...fresh, ...here];
    const end = rows.length > 0 ? await append(tx, rows) : undefined;
    const last = intake.at(-1);
    if (last) await tx.deleteFrom('audit_intake').where('id', '<=', last.id).execute();
    return { added: rows.length, taken: intake.length, head: end };
  });
  if (lastEntry) await trimOutbox(connection, keys, lastEntry);
  return { rows: added, head, isFull: isFull || taken === BATCH };
}

/** What was committed is a beginning of what waits, so that most often one look shows that there is nothing of it. */
async function withoutKnown(tx: Kysely<Tables>, waiting: readonly Waiting[]): Promise<readonly Waiting[]> {
  const [first] = waiting;
  const known = (ids: readonly string[]) =>
    tx.selectFrom('audit_log').select('source_id').where('source_id', 'in', ids).execute();
  if (!first || (await known([first.id])).length === 0) return waiting;
  const found = new Set((await known(waiting.map(({ id }) => id))).map(({ source_id }) => source_id));
  return waiting.filter(({ id }) => !found.has(id));
}

async function append(tx: Kysely<Tables>, rows: readonly Waiting[]): Promise<Head> {
  const last = await tx
    .selectFrom('audit_log')
    .select(['seq', 'hash'])
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  let { seq, hash } = last ?? START;
  const links = rows.map(({ id, entry }) => {
    seq += 1;
    const record = canonicalJson({ ...entry, seq, source_id: id });
    hash = linkHash(hash, record);
    return { seq, source_id: id, record, hash };
  });
  await tx.insertInto('audit_log').values(links).execute();
  return { seq, hash };
}
