import type { Clock } from '../clock.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import type { EventLog } from '../events/event-log.ts';
import { GroupWork, groupWork } from '../events/group-work.ts';
import type { Tail } from '../events/tail.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Service } from '../service.ts';
import type { Store } from '../store/database.ts';
import type { AuditEntry } from './entry.ts';
import { readOutbox } from './outbox.ts';

export interface GapCheckOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly events: EventLog;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this consumer of the group. */
  readonly worker: string;
}

/** A change that the streams tell of and the audit does not. */
export interface Gap {
  readonly event: string;
  readonly at: string;
  readonly subject: string;
  readonly task: string;
  readonly from?: string;
  readonly to?: string;
}

/** Right after a change its row is still in the outbox; a little later most of them are where they are looked up fastest. */
const DELAY_MS = 3_000;

/**
 * The audit-logger of the events: no second writer, but one that counts after the first. Every change of state and every answer that
 * the streams tell of must have its audit row, with the same moment to the microsecond.
 */
export const auditLogger = (options: GapCheckOptions & { readonly tail: Pick<Tail, 'listen'> }): Service =>
  groupWork({
    ...options,
    group: 'audit-logger',
    delayMs: DELAY_MS,
    handle: async (events) => {
      for (const gap of await gapsIn(options, events)) options.log.error('a change has no audit row', { ...gap });
    },
  });

/** Looks at what is new, once. */
export async function checkOnce(options: GapCheckOptions): Promise<{ checked: number; gaps: Gap[] }> {
  const gaps: Gap[] = [];
  const handle = async (events: readonly ReeveEvent[]) => {
    gaps.push(...(await gapsIn(options, events)));
  };
  const checked = await new GroupWork({ ...options, group: 'audit-logger', handle }).workOnce();
  return { checked, gaps };
}

/** Those events that have no audit row, though they should. */
async function gapsIn(options: GapCheckOptions, events: readonly ReeveEvent[]): Promise<Gap[]> {
  const [first] = events;
  const changes = events.flatMap(changeOf);
  if (!first || changes.length === 0) return [];
  // A row goes from the outbox to the store. Asked again after the outbox, the store has what was on its way.
  const untold = await notInStore(options, changes);
  if (untold.length === 0) return [];
  const unwritten = await notInOutbox(options, untold, first.id);
  return unwritten.length === 0 ? [] : notInStore(options, unwritten);
}

const ANSWERS = ['approved', 'rejected', 'changes_requested', 'delegated', 'withdrawn', 'lapsed'].map(
  (one) => `approval:${one}`,
);

function changeOf({ event, payload, at }: ReeveEvent): Gap[] {
  const { task_id: task, approval_id: approval, from, to } = payload;
  if (typeof task !== 'string') return [];
  if (typeof from === 'string' && typeof to === 'string')
    return [{ event, at, subject: `task:${task}`, task, from, to }];
  if (typeof approval === 'string' && ANSWERS.includes(event)) {
    return [{ event, at, subject: `approval:${approval}`, task }];
  }
  return [];
}

async function notInStore({ store }: GapCheckOptions, changes: readonly Gap[]): Promise<Gap[]> {
  const moments = [...new Set(changes.map(({ at }) => at))];
  const rows = await store.db.selectFrom('audit_log').select('record').where('at', 'in', moments).execute();
  return without(
    changes,
    rows.map(({ record }) => JSON.parse(record) as AuditEntry),
  );
}

/** A script gives the event and the row the same millisecond, so that there is nothing to look for before the first of them. */
async function notInOutbox(
  { connection, keys }: GapCheckOptions,
  changes: readonly Gap[],
  from: string,
): Promise<Gap[]> {
  const { rows: waiting } = await readOutbox(connection, keys, OUTBOX_LOOK, from.split('-')[0]);
  return without(
    changes,
    waiting.map(({ entry }) => entry),
  );
}
const OUTBOX_LOOK = 10_000;

function without(changes: readonly Gap[], rows: readonly AuditEntry[]): Gap[] {
  const moves = new Set(rows.map((row) => moveText(row)));
  const answers = new Set(rows.map(({ at, subject }) => `${at} ${subject}`));
  return changes.filter((change) =>
    change.from === undefined ? !answers.has(`${change.at} ${change.subject}`) : !moves.has(moveText(change)),
  );
}

const moveText = ({ task, at, from, to }: Pick<AuditEntry, 'task' | 'at'> & { from?: string; to?: string }): string =>
  [task, at, from, to].join(' ');
