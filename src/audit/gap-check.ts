import type { ReeveEvent } from '../events/catalogue.ts';
import type { EventLog } from '../events/event-log.ts';
import { GroupConsumer } from '../events/group.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Store } from '../store/database.ts';
import { readOutbox } from './outbox.ts';

export interface GapCheckOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly events: EventLog;
  readonly store: Store;
  readonly log: Logger;
  /** Names this consumer of the group. */
  readonly worker: string;
}

export interface Gap {
  readonly task: string;
  readonly at: string;
  readonly from: string;
  readonly to: string;
}

const BATCH = 500;
const LEFT_LYING_MS = 60_000;

/**
 * The audit-logger of the events: no second writer, but one that counts after the first, whenever that has written. Every change of
 * state that the stream tells of must have its audit row, with the same moment to the microsecond.
 */
export async function tellGaps(options: GapCheckOptions): Promise<void> {
  const { gaps } = await checkOnce(options);
  for (const gap of gaps) options.log.error('a change of state has no audit row', { ...gap });
}

/** Looks at what is new in the stream of tasks. */
export async function checkOnce(options: GapCheckOptions): Promise<{ checked: number; gaps: Gap[] }> {
  const { connection, events, worker: consumer } = options;
  const group = new GroupConsumer({ connection, events, stream: 'task', group: 'audit-logger', consumer });
  await group.ensure();
  let checked = 0;
  const gaps: Gap[] = [];
  const look = async (taken: readonly ReeveEvent[]) => {
    gaps.push(...(await missing(options, taken.flatMap(moveOf))));
    await group.acknowledge(taken);
    checked += taken.length;
    return taken.length;
  };
  await look(await group.takeOver(LEFT_LYING_MS, BATCH));
  while ((await look(await group.take(BATCH))) === BATCH);
  return { checked, gaps };
}

function moveOf({ payload, at }: ReeveEvent): Gap[] {
  const { task_id: task, from, to } = payload;
  const texts = [task, from, to];
  if (!texts.every((text) => typeof text === 'string')) return [];
  return [{ task: task as string, at, from: from as string, to: to as string }];
}

/** A row is in the store, or still in the outbox; looked for in the outbox first, it is never missed on its way. */
async function missing({ connection, keys, store }: GapCheckOptions, moves: readonly Gap[]): Promise<Gap[]> {
  if (moves.length === 0) return [];
  const waiting = await readOutbox(connection, keys, OUTBOX_LOOK);
  const rows = await store.db
    .selectFrom('audit_log')
    .select('record')
    .where('at', 'in', [...new Set(moves.map(({ at }) => at))])
    .execute();
  const kept = rows.map(({ record }) => JSON.parse(record) as { task?: string; at: string; from: string; to: string });
  const found = new Set([...waiting.map(({ entry }) => entry), ...kept].map(moveText));
  return moves.filter((move) => !found.has(moveText(move)));
}
const OUTBOX_LOOK = 100_000;

const moveText = ({
  task,
  at,
  from,
  to,
}: {
  task?: string | undefined;
  at: string;
  from: string;
  to: string;
}): string => [task, at, from, to].join(' ');
