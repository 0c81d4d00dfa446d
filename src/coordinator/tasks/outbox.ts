import type { Connection } from '../../redis/connection.ts';
import type { Keyspace } from '../../redis/keys.ts';
import { STATIONS } from './station.ts';
import type { Outcome } from './task-sink.ts';

export interface OutboxOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
}

/**
 * The stream of outcomes that wait to be written to the task file. Scripts append to it in the same step as the change
 * (`event_type`, `task_id`, `agent_id`, `timestamp`, `station`, `payload`); only settling takes from it, so that a file
 * which is away for a day misses nothing.
 */
export class Outbox {
  readonly #options: OutboxOptions;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  async read(limit: number): Promise<Outcome[]> {
    const { connection, keys } = this.#options;
    const entries = await connection.commands.xrange(keys.prdOutbox(), '-', '+', 'COUNT', limit);
    return entries.map(([id, flat]) => outcomeOf(id, flat));
  }

  async settle(ids: readonly string[]): Promise<void> {
    const { connection, keys } = this.#options;
    if (ids.length > 0) await connection.commands.xdel(keys.prdOutbox(), ...ids);
  }

  async size(): Promise<number> {
    const { connection, keys } = this.#options;
    return connection.commands.xlen(keys.prdOutbox());
  }
}

/** Never refuses: an entry that nobody can read would hold up all that follow it. What is odd about it is kept. */
function outcomeOf(id: string, flat: readonly string[]): Outcome {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at]!] = flat[at + 1]!;
  const { event_type, task_id, agent_id, timestamp, station, payload, ...more } = fields;
  return {
    id,
    event: event_type ?? 'unknown',
    task_id: task_id ?? '',
    agent_id: agent_id || undefined,
    at: timestamp ?? new Date(Number.parseInt(id, 10)).toISOString(),
    station: STATIONS.find((word) => word === station),
    payload: { ...more, ...objectOf(payload) },
  };
}

function objectOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : { value: parsed };
  } catch {
    return { text };
  }
}
