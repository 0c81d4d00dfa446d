import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Store } from '../store/database.ts';
import type { DelegationsTable } from '../store/schema.ts';
import { type Conditions, conditionsSchema, type Delegation, type DelegationKind } from './delegation.ts';

export interface DelegationStoreOptions {
  readonly store: Store;
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly clock: Clock;
  /** Which daemon writes: goes into audit rows. */
  readonly service: string;
}

export interface NewDelegation {
  readonly kind: DelegationKind;
  readonly owner_id: string;
  readonly policy_id: string;
  readonly delegate_to: string;
  readonly conditions: Conditions;
  readonly cascade: boolean;
  readonly expires_at?: string | undefined;
  readonly by: string;
}

/**
 * Who answers for whom. The store decides: what stands in Redis, where anyone with a client could write it, is the picture
 * of it under the prescribed keys.
 */
export class DelegationStore {
  readonly #options: DelegationStoreOptions;

  constructor(options: DelegationStoreOptions) {
    this.#options = options;
  }

  async all(owner?: string): Promise<Delegation[]> {
    const rows = this.#options.store.db.selectFrom('delegations').selectAll().orderBy('owner_id').orderBy('created_at');
    return (await (owner === undefined ? rows : rows.where('owner_id', '=', owner)).execute()).map(fromRow);
  }

  /** Those that follow somebody: few, and asked for with every approval. */
  async following(): Promise<Delegation[]> {
    const rows = this.#options.store.db.selectFrom('delegations').selectAll().where('kind', '=', 'follow');
    return (await rows.execute()).map(fromRow);
  }

  async add({
    kind,
    owner_id,
    policy_id,
    delegate_to,
    conditions,
    cascade,
    expires_at,
    by,
  }: NewDelegation): Promise<Delegation> {
    const { store, clock, service } = this.#options;
    const row: DelegationsTable = {
      kind,
      owner_id,
      id: policy_id,
      delegate_to,
      conditions: JSON.stringify(conditions),
      may_cascade: Number(cascade),
      active: 1,
      created_at: isoTime(clock),
      created_by: by,
      expires_at: expires_at ?? null,
    };
    const added = fromRow(row);
    await store.db.transaction().execute(async (tx) => {
      await tx
        .insertInto('delegations')
        .values(row)
        .onConflict((taken) => taken.columns(['owner_id', 'id']).doUpdateSet(row))
        .execute();
      const subject = subjectOf(owner_id, policy_id);
      await recordChange(tx, clock, service, { action: 'delegation.set', subject, detail: { delegation: added } });
    });
    await this.#picture(added);
    return added;
  }

  async remove(owner_id: string, policy_id: string): Promise<void> {
    const { store, connection, keys, clock, service } = this.#options;
    await store.db.transaction().execute(async (tx) => {
      const gone = await tx
        .deleteFrom('delegations')
        .where('owner_id', '=', owner_id)
        .where('id', '=', policy_id)
        .executeTakeFirst();
      if (gone.numDeletedRows === 0n)
        throw new ReeveError('DELEGATION_UNKNOWN', { owner: owner_id, delegation: policy_id });
      const subject = subjectOf(owner_id, policy_id);
      await recordChange(tx, clock, service, { action: 'delegation.remove', subject });
    });
    await connection.commands.del(keys.delegation(owner_id, policy_id));
    await connection.commands.srem(keys.delegationIndex(owner_id), policy_id);
  }

  /** Draws the picture anew, as after Redis was lost. */
  async mirrorOnce(): Promise<number> {
    const all = await this.all();
    for (const one of all) await this.#picture(one);
    return all.length;
  }

  async #picture(delegation: Delegation): Promise<void> {
    const { connection, keys, clock } = this.#options;
    const { kind, owner_id, policy_id, delegate_to, conditions, cascade, active, created_at, expires_at } = delegation;
    const [redis, key] = [connection.commands, keys.delegation(owner_id, policy_id)];
    const left = expires_at === undefined ? undefined : Date.parse(expires_at) - clock.now();
    if (left !== undefined && left <= 0) return;
    await redis.sadd(keys.delegationIndex(owner_id), policy_id);
    const fields = {
      kind,
      owner_id,
      delegate_to,
      conditions: JSON.stringify(conditions),
      cascade: String(cascade),
      active: String(active),
      created_at,
      expires_at: expires_at ?? '',
    };
    await redis.hset(key, fields);
    if (left !== undefined) await redis.pexpire(key, Math.ceil(left));
    else await redis.persist(key);
  }
}

const subjectOf = (owner: string, id: string): string => `delegation:${owner}:${id}`;

function fromRow(row: DelegationsTable): Delegation {
  const { kind, owner_id, id, delegate_to, conditions, may_cascade, active, created_at, expires_at } = row;
  return {
    kind,
    owner_id,
    policy_id: id,
    delegate_to,
    conditions: conditionsSchema.parse(JSON.parse(conditions)),
    cascade: may_cascade === 1,
    active: active === 1,
    created_at,
    ...(expires_at !== null && { expires_at }),
  };
}
