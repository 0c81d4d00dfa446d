import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/clock.ts';
import { type HttpOptions, type HttpServer, httpServer } from '../../src/http/server.ts';
import { silentLog } from '../../src/log.ts';
import { mcpDoor } from '../../src/mcp/door.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';
import { operations } from '../../src/operations/index.ts';
import { defineOperation, invoke, type Operation } from '../../src/operations/operation.ts';
import type { TestRooms } from '../support/rooms.ts';

export interface Door extends HttpServer {
  /** Asks, by path. */
  get(path: string, init?: RequestInit): Promise<Response>;
}

/** The HTTP door as the daemon builds it, MCP and metrics included; stopped when the test ends. */
export function aDoor(rooms: TestRooms, more: Partial<HttpOptions> = {}): Door {
  const offered = more.operations ?? operations;
  const metrics = createMetrics({
    version: '0.0.0-test',
    dependencies: () => rooms.readiness.ask(),
    redisRestarts: () => 0,
    locksHeld: async () => ({ task: 0, resource: 0, agent: 0 }),
    sources: () => rooms.sync.status(),
  });
  const stopCounting = rooms.tail.listen((event) => metrics.count(event));
  const mcp = mcpDoor({
    operations: offered,
    version: '0.0.0-test',
    log: silentLog,
    ask: (operation, caller, input, signal) => invoke(operation, { rooms, operations: offered, caller, signal }, input),
  });
  const door = httpServer({
    host: '127.0.0.1',
    port: 0,
    bodyLimitBytes: 2_048,
    fileBodyBytes: 12_000_000,
    requestMs: 30_000,
    drainMs: 5_000,
    version: '0.0.0-test',
    operations: offered,
    rooms,
    clock: systemClock,
    log: silentLog,
    onDrain: () => rooms.readiness.drain(),
    metrics,
    mounts: { '/mcp': mcp.mount },
    webhook: { handle: rooms.webhook, mostBytes: 1_000_000 },
    ...more,
  });
  onTestFinished(async () => {
    stopCounting();
    await door.stop();
    await mcp.close();
  });
  return Object.assign(Object.create(door) as HttpServer, {
    get: (path: string, init?: RequestInit) => fetch(new URL(path, door.url), init),
  });
}

export async function anOpenDoor(rooms: TestRooms, more: Partial<HttpOptions> = {}): Promise<Door> {
  const door = aDoor(rooms, more);
  await door.start();
  return door;
}

/** An operation that takes a body, as none of the foundation's does. */
export const echo: Operation = defineOperation({
  name: 'test.echo',
  summary: 'Say it again',
  access: 'work',
  input: z.object({ id: z.string(), text: z.string().default('nothing'), times: z.int().max(3).default(1) }),
  output: z.object({ said: z.array(z.string()), by: z.string() }),
  errors: [],
  http: { method: 'POST', path: '/echo/{id}' },
  cli: { words: 'echo', examples: ['reeve echo'] },
  mcp: { tool: 'echo', description: 'Says it again.', readOnly: true, idempotent: true },
  run: async ({ caller }, { id, text, times }) => ({
    said: Array.from({ length: times }, () => `${id}: ${text}`),
    by: caller.id,
  }),
});
