import { hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Audit } from '../src/audit/audit.ts';
import { START } from '../src/audit/chain.ts';
import { drainOnce } from '../src/audit/drain.ts';
import { systemClock } from '../src/clock.ts';
import { silentLog } from '../src/log.ts';
import { openStore, type Store } from '../src/store/database.ts';
import { type BenchRedis, openBenchRedis } from './bench-redis.ts';
import { interleaved, type Metric, metric, type Surroundings } from './harness.ts';

const ROWS = 10_000;
/** As many as the drain puts into one transaction. */
const TOGETHER = 1_000;

/** What the audit costs: from the outbox into the chain, and following the chain, each against the least that could do it. */
export async function auditMetrics({ rounds, note }: Surroundings): Promise<readonly Metric[]> {
  await using bench = await openBenchRedis();
  await using chained = await aStore();
  await using bare = await aStore();
  note(`draining ${ROWS} rows, against inserting the same rows`);
  const drained = await interleaved(rounds, {
    drain: () => drain(bench, chained.store),
    insert: async () => insert(bare.store, await recordsOf(chained.store)),
  });
  note(`following the chain of ${ROWS} rows, against hashing the same bytes`);
  const records = (await recordsOf(chained.store)).map(({ record }) => record);
  const { connection, keys } = bench;
  const audit = new Audit({ connection, keys, store: chained.store });
  const verified = await interleaved(rounds, {
    verify: () => timed(() => audit.verify([])),
    hash: () => timed(async () => hashAll(records)),
  });
  return [
    metric({
      name: `audit drain of ${ROWS} rows, against a bare batched insert`,
      unit: 'ms',
      samples: drained.drain,
      floor: drained.insert,
      bar: { of: 'ratio', atMost: 3 },
    }),
    metric({
      name: `audit verify of ${ROWS} rows, against hashing the same bytes`,
      unit: 'ms',
      samples: verified.verify,
      floor: verified.hash,
      bar: { of: 'ratio', atMost: 2 },
    }),
  ];
}

async function drain({ connection, keys, redis }: BenchRedis, store: Store): Promise<number> {
  await store.db.deleteFrom('audit_log').execute();
  const pipeline = redis.pipeline();
  for (let at = 0; at < ROWS; at++) pipeline.xadd(keys.auditOutbox(), '*', ...aRow(at));
  await pipeline.exec();
  return timed(() => drainOnce({ connection, keys, store, clock: systemClock, log: silentLog, worker: 'bench' }));
}

const aRow = (at: number): string[] =>
  Object.entries({
    at: `2026-01-01T00:00:00.${String(at).padStart(6, '0')}Z`,
    action: 'claim',
    subject: `task:TASK-${at}`,
    from: 'APPROVED',
    to: 'APPLYING',
    service: 'bench',
    actor: JSON.stringify({
      user: `agent-${at % 50}`,
      door: 'http',
      ip: '127.0.0.1',
      user_agent: 'reeve-worker/1.0',
      operation: 'work.claim',
      cmd_id: '00000000-0000-4000-8000-000000000000',
    }),
    fencing_token: '1731912345000123',
  }).flat();

const recordsOf = (store: Store) =>
  store.db.selectFrom('audit_log').select(['seq', 'source_id', 'record', 'hash']).orderBy('seq').execute();

/** The same rows into the same table, as they are. */
async function insert({ db }: Store, rows: Awaited<ReturnType<typeof recordsOf>>): Promise<number> {
  await db.deleteFrom('audit_log').execute();
  return timed(async () => {
    for (let at = 0; at < rows.length; at += TOGETHER) {
      await db.transaction().execute((tx) =>
        tx
          .insertInto('audit_log')
          .values(rows.slice(at, at + TOGETHER))
          .execute(),
      );
    }
  });
}

/** In a chain, as no other order of hashing could replace. */
function hashAll(records: readonly string[]): string {
  let before = START.hash;
  for (const record of records) before = hash('sha256', `${before}\n${record}`, 'hex');
  return before;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

async function aStore(): Promise<AsyncDisposable & { readonly store: Store }> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-bench-audit-'));
  const store = await openStore({ dataDir: dir, clock: systemClock, log: silentLog });
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
