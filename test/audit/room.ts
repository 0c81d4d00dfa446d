import { Audit } from '../../src/audit/audit.ts';
import { type DrainOptions, drainOnce } from '../../src/audit/drain.ts';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { aStore } from '../store/builders.ts';
import type { RedisRoom } from '../support/redis-room.ts';

export interface AuditRoom {
  readonly store: Store;
  readonly audit: Audit;
  readonly options: DrainOptions;
  /** Leaves so many rows in the outbox, as scripts do. */
  write(count: number, more?: Readonly<Record<string, string>>): Promise<void>;
  drain(): Promise<number>;
}

/** The audit log over a real Redis and a store of its own. */
export async function anAuditRoom({ connection, keys, client }: RedisRoom, url: string): Promise<AuditRoom> {
  const store = await aStore({ url });
  const options = { connection, keys, store, clock: systemClock, log: silentLog, worker: 'test' };
  let written = 0;
  return {
    store,
    audit: new Audit({ connection, keys, store }),
    options,
    drain: async () => (await drainOnce(options)).rows,
    write: async (count, more = {}) => {
      const pipeline = client.pipeline();
      for (let at = 0; at < count; at += 1) {
        written += 1;
        const row = {
          at: `2026-01-01T00:00:00.${String(written).padStart(6, '0')}Z`,
          action: 'claim',
          subject: `task:T-${written}`,
          from: 'APPROVED',
          to: 'APPLYING',
          service: 'test',
          actor: '{"user":"ann","ip":"10.0.0.7","reason":"from the caller"}',
          fencing_token: '1731912345000123',
          reason: '',
          ...more,
        };
        pipeline.xadd(keys.auditOutbox(), '*', ...Object.entries(row).flat());
      }
      await pipeline.exec();
    },
  };
}
