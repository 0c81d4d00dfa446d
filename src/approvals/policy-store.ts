import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import { REVIEWER_POLICY, type ReviewerPolicy } from '../reviewer-policy.ts';
import type { Store } from '../store/database.ts';
import type { PolicyInForce } from './policy.ts';

export interface PolicyStoreOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Those of the configuration; asked each time, for a reload replaces them. */
  readonly fromFile: () => readonly ReviewerPolicy[];
  /** Which daemon writes: goes into audit rows. */
  readonly service: string;
  readonly freshMs?: number;
}

export interface PolicyVersion {
  readonly version: number;
  readonly active: boolean;
  readonly created_at: string;
  readonly created_by: string;
  readonly policy: ReviewerPolicy;
}

/** Decisions are many and policies few: one reading serves a second of decisions. */
const FRESH_MS = 1_000;

/** Policies by name. A version is never changed, only followed by another: what was decided can be read with its rule. */
export class PolicyStore {
  readonly #options: PolicyStoreOptions;
  #latest: { readonly at: number; readonly read: Promise<readonly PolicyInForce[]> } | undefined;

  constructor(options: PolicyStoreOptions) {
    this.#options = options;
  }

  /** All that are in force, those of the file included. */
  async inForce(): Promise<readonly PolicyInForce[]> {
    const now = this.#options.clock.now();
    if (this.#latest && now - this.#latest.at < (this.#options.freshMs ?? FRESH_MS)) return this.#latest.read;
    const read = this.#read();
    this.#latest = { at: now, read };
    read.catch(() => {
      this.#latest = undefined;
    });
    return read;
  }

  async find(id: string): Promise<PolicyInForce> {
    const found = (await this.inForce()).find(({ policy_id }) => policy_id === id);
    if (!found) throw new ReeveError('POLICY_UNKNOWN', { policy: id });
    return found;
  }

  async history(id: string): Promise<PolicyVersion[]> {
    const rows = await this.#options.store.db
      .selectFrom('policies')
      .selectAll()
      .where('id', '=', id)
      .orderBy('version')
      .execute();
    return rows.map(({ version, active, created_at, created_by, body }) => ({
      version,
      active: active === 1,
      created_at,
      created_by,
      policy: REVIEWER_POLICY.parse(JSON.parse(body)),
    }));
  }

  /** A new version, also of one that was taken away. The same content again is no new version. */
  async set(policy: ReviewerPolicy, by: string): Promise<PolicyInForce> {
    const { policy_id: id } = policy;
    this.#refuseOfFile(id);
    const last = (await this.history(id)).at(-1);
    if (last?.active && JSON.stringify(last.policy) === JSON.stringify(policy)) {
      return { ...policy, version: last.version, source: 'store' };
    }
    const version = (last?.version ?? 0) + 1;
    await this.#write(id, { version, body: policy, active: 1, by });
    return { ...policy, version, source: 'store' };
  }

  async remove(id: string, by: string): Promise<void> {
    this.#refuseOfFile(id);
    const last = (await this.history(id)).at(-1);
    if (!last?.active) throw new ReeveError('POLICY_UNKNOWN', { policy: id });
    await this.#write(id, { version: last.version + 1, body: last.policy, active: 0, by });
  }

  async #write(id: string, { version, body, active, by }: Written): Promise<void> {
    const { store, clock, service } = this.#options;
    const row = { id, version, body: JSON.stringify(body), active, created_at: isoTime(clock), created_by: by };
    // Version and name together are the key: of two who write at once, one is refused.
    await store.db.transaction().execute(async (tx) => {
      const added = await tx
        .insertInto('policies')
        .values(row)
        .onConflict((taken) => taken.columns(['id', 'version']).doNothing())
        .executeTakeFirst();
      if (Number(added.numInsertedOrUpdatedRows ?? 0) === 0) throw new ReeveError('POLICY_CHANGED', { policy: id });
      const action = active === 1 ? 'policy.set' : 'policy.remove';
      await recordChange(tx, clock, service, { action, subject: `policy:${id}`, detail: { version, policy: body } });
    });
    this.#latest = undefined;
  }

  #refuseOfFile(id: string): void {
    if (this.#options.fromFile().some(({ policy_id }) => policy_id === id)) {
      throw new ReeveError('POLICY_OF_FILE', { policy: id });
    }
  }

  async #read(): Promise<readonly PolicyInForce[]> {
    const { store, fromFile } = this.#options;
    const rows = await store.db.selectFrom('policies').selectAll().orderBy('id').orderBy('version').execute();
    const newest = new Map(rows.map((row) => [row.id, row]));
    const stored = [...newest.values()]
      .filter(({ active }) => active === 1)
      .map(({ body, version }): PolicyInForce => {
        return { ...REVIEWER_POLICY.parse(JSON.parse(body)), version, source: 'store' };
      });
    const named = fromFile().map((policy): PolicyInForce => ({ ...policy, version: 1, source: 'file' }));
    const isNamed = new Set(named.map(({ policy_id }) => policy_id));
    return [...named, ...stored.filter(({ policy_id }) => !isNamed.has(policy_id))];
  }
}

interface Written {
  readonly version: number;
  readonly body: ReviewerPolicy;
  readonly active: 0 | 1;
  readonly by: string;
}
