import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { EVENTS, type ReeveEvent } from '../events/catalogue.ts';
import type { DependencyState } from '../system/readiness.ts';

export interface MetricsOptions {
  readonly version: string;
  /** Asked on each scrape. */
  readonly dependencies: () => Promise<readonly DependencyState[]>;
  /** How often the embedded Redis had to be started again. */
  readonly redisRestarts: () => number;
}

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  observe(route: string, method: string, status: number, seconds: number): void;
  count(event: ReeveEvent): void;
}

/** Prometheus figures. Labels are of few values: routes and event names, never ids. */
export function createMetrics({ version, dependencies, redisRestarts }: MetricsOptions): Metrics {
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
  return {
    contentType: registry.contentType,
    async text() {
      for (const { name: dependency, ok, latency_ms } of await dependencies()) {
        up.set({ dependency }, ok ? 1 : 0);
        latency.set({ dependency }, latency_ms / 1000);
      }
      return registry.metrics();
    },
    observe: (route, method, status, seconds) => requests.observe({ route, method, status }, seconds),
    // Raw clients may name events as they like: each name of theirs would be a series for ever.
    count: ({ stream, event }) => events.inc({ stream, event: Object.hasOwn(EVENTS, event) ? event : 'other' }),
  };
}
