import { z } from 'zod';
import type { Connection } from '../redis/connection.ts';
import type { StreamName } from './catalogue.ts';
import { compareIds } from './cursor.ts';
import type { EventLog } from './event-log.ts';
import { pairs } from './group.ts';

export interface BacklogOptions {
  readonly connection: Connection;
  readonly events: EventLog;
}

/** How far a group has come with a stream. */
export interface Reader {
  readonly group: string;
  /** The oldest entry it has not finished: everything before it may go. */
  readonly needs: string;
}

/** How far each group of a stream has come, whoever made it; empty if the stream is not there. */
export async function readersOf({ connection, events }: BacklogOptions, stream: StreamName): Promise<Reader[]> {
  const key = events.key(stream);
  const redis = connection.commands;
  if ((await redis.exists(key)) === 0) return [];
  const groups = groupFacts.parse(await redis.xinfo('GROUPS', key));
  return Promise.all(
    groups.map(async ({ name, pending, 'last-delivered-id': delivered }) => {
      const [, oldest] = pending > 0 ? pendingFacts.parse(await redis.xpending(key, name)) : [0, null];
      return { group: name, needs: oldest ?? placeAfter(delivered) };
    }),
  );
}

/** The least of what is still needed; undefined if nobody needs anything. */
export const slowest = (readers: readonly Reader[]): Reader | undefined =>
  readers.toSorted((a, b) => compareIds(a.needs, b.needs))[0];

/** The first id that can come after this one. */
export function placeAfter(id: string): string {
  const [ms, seq] = id.split('-') as [string, string];
  return `${ms}-${BigInt(seq) + 1n}`;
}

const groupFacts = z.array(
  z
    .array(z.unknown())
    .transform((flat) =>
      z.object({ name: z.string(), pending: z.number(), 'last-delivered-id': z.string() }).parse(pairs(flat)),
    ),
);
const pendingFacts = z.tuple([z.number(), z.string().nullable()], z.unknown());
