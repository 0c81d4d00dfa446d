import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { AuditEntry } from './entry.ts';

/** A row that waits for the drain. */
export interface Waiting {
  readonly id: string;
  readonly entry: AuditEntry;
}

export interface Outbox {
  readonly rows: readonly Waiting[];
  /** The last entry they came from. */
  readonly last: string | undefined;
  /** Whether there may be more. */
  readonly isFull: boolean;
}

/** The oldest rows that scripts left in Redis, or the oldest from an id on: about so many, for those of one entry stay together. */
export async function readOutbox({ commands }: Connection, keys: Keyspace, count: number, from = '-'): Promise<Outbox> {
  const entries = await commands.xrange(keys.auditOutbox(), from, '+', 'COUNT', count);
  const rows: Waiting[] = [];
  let read = 0;
  while (read < entries.length && rows.length < count) rows.push(...rowsOf(entries[read++]!));
  return { rows, last: entries[read - 1]?.[0], isFull: rows.length >= count };
}

/** An entry is one row, or several moves of tasks that were written together. */
function rowsOf([id, flat]: readonly [string, readonly string[]]): Waiting[] {
  const together = flat[0] === 'rows' ? valueOr(flat[1] ?? '') : undefined;
  if (!Array.isArray(together)) return [{ id, entry: decode(flat) }];
  return together.map((row: unknown, at) => ({ id: `${id}.${at}`, entry: decode(flatOf(row)) }));
}

const flatOf = (row: unknown): string[] =>
  Object.entries(objectOr(row)).flatMap(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);

/** Takes away what the store has, up to and with this one. */
export async function trimOutbox({ commands }: Connection, keys: Keyspace, upTo: string): Promise<void> {
  const [ms, seq] = upTo.split('-') as [string, string];
  await commands.xtrim(keys.auditOutbox(), 'MINID', `${ms}-${Number(seq) + 1}`);
}

/** What a raw client put there is a row, too: better one that says little than one that is lost. Empty fields are as none. */
function decode(flat: readonly string[]): AuditEntry {
  const entry: Record<string, unknown> = {
    user: 'unknown',
    at: '',
    action: '',
    subject: '',
    from: '',
    to: '',
    service: '',
  };
  const actor = flat.indexOf('actor');
  if (actor >= 0) Object.assign(entry, objectOr(valueOr(flat[actor + 1] ?? '')));
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] as string;
    const text = flat[at + 1] as string;
    if (text !== '' && name !== 'actor') entry[name] = name === 'detail' ? valueOr(text) : text;
  }
  const { subject } = entry as { subject: string };
  if (entry.task === undefined && subject.startsWith('task:')) entry.task = subject.slice('task:'.length);
  return entry as AuditEntry;
}

function objectOr(value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { actor: value };
}

function valueOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
