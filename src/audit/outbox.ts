import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { AuditEntry } from './entry.ts';

/** A row that waits for the drain. */
export interface Waiting {
  readonly id: string;
  readonly entry: AuditEntry;
}

/** The oldest rows that scripts left in Redis. */
export async function readOutbox({ commands }: Connection, keys: Keyspace, count: number): Promise<Waiting[]> {
  const entries = await commands.xrange(keys.auditOutbox(), '-', '+', 'COUNT', count);
  return entries.map(([id, flat]) => ({ id, entry: decode(flat) }));
}

/** Takes away what the store has, up to and with this one. */
export async function trimOutbox({ commands }: Connection, keys: Keyspace, upTo: string): Promise<void> {
  const [ms, seq] = upTo.split('-') as [string, string];
  await commands.xtrim(keys.auditOutbox(), 'MINID', `${ms}-${Number(seq) + 1}`);
}

/** What a raw client put there is a row, too: better one that says little than one that is lost. */
function decode(flat: readonly string[]): AuditEntry {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2)
    if (flat[at + 1] !== '') fields[flat[at] as string] = flat[at + 1] as string;
  const { actor = '{}', detail, ...row } = fields;
  const said = objectOr(actor);
  const task = row.task ?? /^task:(.+)$/.exec(row.subject ?? '')?.[1];
  return {
    user: 'unknown',
    ...said,
    at: '',
    action: '',
    subject: '',
    from: '',
    to: '',
    service: '',
    ...row,
    ...(task !== undefined && { task }),
    ...(detail !== undefined && { detail: valueOr(detail) }),
  };
}

const objectOr = (text: string): Record<string, string> => {
  const value = valueOr(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, string>)
    : { actor: text };
};

function valueOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
