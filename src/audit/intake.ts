import type { Kysely } from 'kysely';
import { currentActor } from '../actor.ts';
import { type Clock, isoTime } from '../clock.ts';
import type { Tables } from '../store/schema.ts';
import type { AuditEntry } from './entry.ts';

export type Change = Pick<AuditEntry, 'action' | 'subject'> & Partial<AuditEntry>;

/**
 * The audit row of a change that is made in the store rather than in Redis. Written in the transaction of the change, so that
 * there is neither without the other; the drain takes it up into the chain.
 */
export async function recordChange(tx: Kysely<Tables>, clock: Clock, service: string, change: Change): Promise<void> {
  const at = isoTime(clock).replace(/Z$/, '000Z');
  const body: AuditEntry = { ...currentActor(), service, from: '', to: '', ...change, at };
  await tx
    .insertInto('audit_intake')
    .values({ at, body: JSON.stringify(body) })
    .execute();
}
