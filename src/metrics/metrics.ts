import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { EVENTS, type ReeveEvent } from '../events/catalogue.ts';
import type { SourceStatus } from '../sync/sync.ts';
import type { DependencyState } from '../system/readiness.ts';
import { type LockCounts, lockMetrics } from './lock-metrics.ts';

export interface MetricsOptions {
  readonly version: string;
  /** Asked on each scrape. */
  readonly dependencies: () => Promise<readonly DependencyState[]>;
  /** How often the embedded Redis had to be started again. */
  readonly redisRestarts: () => number;
  /** Asked on each scrape. */
  readonly locksHeld: () => Promise<LockCounts>;
  readonly sources: () => Promise<readonly SourceStatus[]>;
}

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  observe(route: string, method: string, status: number, seconds: number): void;
  count(event: ReeveEvent): void;
}

/** Prometheus figures. Labels are of few values: routes and event names, never ids. */
export function createMetrics({ version, dependencies, redisRestarts, locksHeld, sources }: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // Its default of 10 ms wakes an idle daemon a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  new Gauge({
    name: 'reeve_build_info',
    help: 'Always 1; the labels say what runs',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.versions.node }, 1);
  const requests = new Histogram({
    name: 'reeve_http_request_duration_seconds',
    help: 'How long HTTP requests took',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10],
    registers,
  });
  const events = new Counter({
    name: 'reeve_events_total',
    help: 'Events seen on the streams since the start',
    labelNames: ['stream', 'event'],
    registers,
  });
  const up = new Gauge({
    name: 'reeve_dependency_up',
    help: '1 while a dependency works',
    labelNames: ['dependency'],
    registers,
  });
  const latency = new Gauge({
    name: 'reeve_dependency_latency_seconds',
    help: 'How long a dependency took to answer the last check',
    labelNames: ['dependency'],
    registers,
  });
  new Gauge({
    name: 'reeve_redis_restarts',
    help: 'How often the embedded Redis died and was started again',
    registers,
    collect() {
      this.set(redisRestarts());
    },
  });
  const locks = lockMetrics(registry, locksHeld);
  const tellSources = sourceGauges(registers, sources);
  return {
    contentType: registry.contentType,
    async text() {
      for (const { name: dependency, ok, latency_ms } of await dependencies()) {
        up.set({ dependency }, ok ? 1 : 0);
        latency.set({ dependency }, latency_ms / 1000);
      }
      // Without Redis there are no figures about locks, and all the others are wanted more than ever.
      await locks.collect().catch(() => {});
      await tellSources();
      return registry.metrics();
    },
    observe: (route, method, status, seconds) => requests.observe({ route, method, status }, seconds),
    count: (event) => {
      // Raw clients may name events as they like: each name of theirs would be a series for ever.
      events.inc({ stream: event.stream, event: Object.hasOwn(EVENTS, event.event) ? event.event : 'other' });
      if (event.stream === 'lock') locks.count(event);
    },
  };
}

/** How the asset sources are. A Redis that does not answer shows in the dependencies; the figures then stay as they were. */
function sourceGauges(registers: Registry[], sources: MetricsOptions['sources']): () => Promise<void> {
  const gauge = (name: string, help: string, ...more: string[]) =>
    new Gauge({ name, help, labelNames: ['source', ...more], registers });
  const quota = gauge('reeve_github_rate_limit_remaining', 'Requests that GitHub still takes this hour');
  const assets = gauge('reeve_assets', 'Assets that are served');
  const bad = gauge('reeve_assets_bad', 'Files that are bad or in conflict');
  const synced = gauge('reeve_sync_last_success_timestamp_seconds', 'When assets were last published');
  const failures = gauge('reeve_sync_failures', 'How many times in a row a source has failed');
  return async () => {
    for (const one of await sources().catch(() => [])) {
      const source = { source: one.name };
      assets.set(source, one.assets);
      bad.set(source, one.errors);
      failures.set(source, one.failures);
      if (one.quota) quota.set(source, one.quota.remaining);
      if (one.synced_at) synced.set(source, Date.parse(one.synced_at) / 1000);
    }
  };
}
