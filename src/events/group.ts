import { z } from 'zod';
import type { Connection } from '../redis/connection.ts';
import type { ReeveEvent, StreamName } from './catalogue.ts';
import { decodeEntry } from './entry.ts';
import type { EventLog } from './event-log.ts';

/** The consumer groups and what each reads: it gets every event of a stream once, however many consumers share the work. */
export const GROUPS = {
  'notification-service': ['task', 'approval', 'lock', 'system'],
  'audit-logger': ['task', 'approval', 'lock'],
  'webhook-dispatcher': ['task', 'approval', 'lock', 'system'],
  'analytics-pipeline': ['task', 'approval', 'lock', 'work'],
} as const satisfies Record<string, readonly StreamName[]>;
export type GroupName = keyof typeof GROUPS;

export interface GroupOptions {
  readonly connection: Connection;
  readonly events: EventLog;
  readonly stream: StreamName;
  readonly group: GroupName;
  /** Names this consumer; after a restart the same name finds what it had not acknowledged. */
  readonly consumer: string;
}

/** One consumer of a group. At least once: what is taken and not acknowledged comes back to someone. */
export class GroupConsumer {
  readonly #options: GroupOptions;

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  /** Makes the group if it is not there, from the beginning of the stream. */
  async ensure(): Promise<void> {
    const { connection, group } = this.#options;
    try {
      await connection.commands.xgroup('CREATE', this.#key, group, '0', 'MKSTREAM');
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('BUSYGROUP'))) throw error;
    }
  }

  /** New events for this consumer, at most `count`; they are its own until acknowledged. */
  take(count: number): Promise<ReeveEvent[]> {
    return this.#read('>', count);
  }

  /** What it took before and has not acknowledged, oldest first. */
  mine(count: number): Promise<ReeveEvent[]> {
    return this.#read('0', count);
  }

  async #read(from: '>' | '0', count: number): Promise<ReeveEvent[]> {
    const { connection, group, consumer } = this.#options;
    const read = await connection.commands.xreadgroup(
      'GROUP',
      group,
      consumer,
      'COUNT',
      count,
      'STREAMS',
      this.#key,
      from,
    );
    return this.#decode(read?.[0]?.[1] ?? []);
  }

  /** Takes over what another consumer took and has left lying for `idleMs`: that one died. */
  async takeOver(idleMs: number, count: number): Promise<ReeveEvent[]> {
    const { connection, group, consumer } = this.#options;
    const taken: ReeveEvent[] = [];
    let from = '0-0';
    do {
      // One call looks at so many entries and no more; those of a consumer that is alive may stand in front.
      const [next, entries] = (await connection.commands.xautoclaim(
        this.#key,
        group,
        consumer,
        idleMs,
        from,
        'COUNT',
        count - taken.length,
      )) as [string, (Entry | null)[]];
      taken.push(...this.#decode(entries.filter((entry) => entry !== null)));
      from = next;
    } while (from !== '0-0' && taken.length < count);
    return taken;
  }

  async acknowledge(events: readonly ReeveEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { connection, group } = this.#options;
    await connection.commands.xack(this.#key, group, ...events.map(({ id }) => id));
  }

  /** Forgets consumers that have nothing left and were not heard of for so long: each life of a daemon has a new name. */
  async forgetGone(idleMs: number): Promise<number> {
    const { connection, group, consumer } = this.#options;
    const known = facts.parse(await connection.commands.xinfo('CONSUMERS', this.#key, group));
    const gone = known.filter(({ name, pending, idle }) => name !== consumer && pending === 0 && idle >= idleMs);
    for (const { name } of gone) await connection.commands.xgroup('DELCONSUMER', this.#key, group, name);
    return gone.length;
  }

  get #key(): string {
    return this.#options.events.key(this.#options.stream);
  }

  #decode(entries: readonly Entry[]): ReeveEvent[] {
    // An entry that was trimmed while it was pending comes back without its fields.
    return entries
      .filter(([, flat]) => flat !== null)
      .map(([id, flat]) => decodeEntry(this.#options.stream, id, flat ?? []));
  }
}

type Entry = [id: string, fields: string[] | null];

const facts = z.array(z.array(z.unknown()).transform((flat) => consumerFacts.parse(pairs(flat))));
const consumerFacts = z.object({ name: z.string(), pending: z.number(), idle: z.number() });

/** What XINFO answers, as it answers it: names and values in turn. */
export const pairs = (flat: readonly unknown[]): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, at) => [String(flat[at * 2]), flat[at * 2 + 1]]));
