import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ReeveEvent } from '../events/catalogue.ts';

export interface LockCounts {
  readonly task: number;
  readonly resource: number;
  readonly agent: number;
}

/** Waits that never ended in a grant are forgotten, the oldest first. */
const MOST_WAITS = 10_000;

/** Figures about locks: from the events, and on each scrape from the registry. */
export function lockMetrics(registry: Registry, held: () => Promise<LockCounts>) {
  const registers = [registry];
  const waits = new Histogram({
    name: 'reeve_lock_wait_seconds',
    help: 'How long those who stood in line for a lock waited for it',
    buckets: [0.01, 0.05, 0.25, 1, 5, 15, 60, 300],
    registers,
  });
  const deadlocks = new Counter({ name: 'reeve_deadlocks_total', help: 'Deadlocks that were broken', registers });
  const locks = new Gauge({
    name: 'reeve_locks_held',
    help: 'Locks that are held, by what they are on',
    labelNames: ['type'],
    registers,
  });
  const since = new Map<string, number>();
  return {
    async collect(): Promise<void> {
      for (const [type, count] of Object.entries(await held())) locks.set({ type }, count);
    },
    count({ event, at, payload }: ReeveEvent): void {
      const wait = JSON.stringify([payload.lock, payload.agent_id]);
      if (event === 'lock:deadlock') deadlocks.inc();
      if (event === 'lock:queued') {
        since.set(wait, Date.parse(at));
        const [oldest] = since.keys();
        if (since.size > MOST_WAITS && oldest !== undefined) since.delete(oldest);
      }
      const began = since.get(wait);
      if (event !== 'lock:acquired' || began === undefined) return;
      since.delete(wait);
      waits.observe(Math.max(0, Date.parse(at) - began) / 1000);
    },
  };
}
