import type { LockRef, LockView } from './lock.ts';
import { type LockScripts, NOBODY } from './lock-scripts.ts';
import { lockView, type Seen } from './lock-view.ts';
import { inspect } from './scripts.ts';

export interface ListRequest {
  readonly agent?: string | undefined;
  readonly type?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}
export interface LockPage {
  readonly locks: readonly LockView[];
  readonly cursor: string | undefined;
}

const PAGE = 100;

/** Looks at locks. What indexes say is a superset: only the lock itself says who holds it. */
export class LockReader {
  readonly #scripts: LockScripts;

  constructor(scripts: LockScripts) {
    this.#scripts = scripts;
  }

  async look(lock: LockRef): Promise<Seen> {
    const wanted = [{ lock }];
    const { scripts } = this.#scripts;
    const keys = this.#scripts.all(wanted);
    const { reply } = await scripts.run(inspect, keys, this.#scripts.common(wanted, NOBODY));
    return lockView(lock, reply[0] as string);
  }

  /** Locks that are held, a page at a time; in no order. */
  async list({ agent, type, cursor = '0', limit = PAGE }: ListRequest): Promise<LockPage> {
    const [next, found] = await this.#scan(agent, type, [cursor, 'COUNT', limit]);
    const views = await Promise.all(this.#refs(found).map((lock) => this.look(lock)));
    const isWanted = (view: LockView) => view.holders.some((holder) => agent === undefined || holder.agent === agent);
    return { locks: views.filter(isWanted), cursor: next === '0' ? undefined : next };
  }

  async #scan(agent: string | undefined, type: string | undefined, page: [cursor: string, 'COUNT', limit: number]) {
    const { connection, keys } = this.#scripts;
    const redis = connection.commands;
    if (agent !== undefined) return redis.sscan(keys.agentLocks(agent), ...page);
    if (type !== undefined) return redis.sscan(keys.resourceLocks(type), ...page);
    const [next, flat] = await redis.zscan(keys.lockRegistry(), ...page);
    return [next, flat.filter((_, index) => index % 2 === 0)] as const;
  }

  async waitGraph(): Promise<readonly LockView[]> {
    const { connection, keys } = this.#scripts;
    const waited = await connection.commands.zrange(keys.waitedLocks(), '0', '-1');
    const views = await Promise.all(this.#refs(waited).map((lock) => this.look(lock)));
    return views.filter(({ waiters }) => waiters.some(({ alive }) => alive));
  }

  async waitsFor(agent: string): Promise<readonly LockRef[]> {
    const { connection, keys } = this.#scripts;
    return this.#refs(await connection.commands.smembers(keys.waitFor(agent)));
  }

  /** Leases that are over count until they are reaped: the indexes must lead the sweeper to them. */
  async held(lock: LockRef, agent: string) {
    const { holders, at, vanished } = await this.look(lock);
    const left = holders.map(({ expiresAt }) => Math.max(0, Date.parse(expiresAt) - Date.parse(at)));
    if (vanished.length > 0) left.push(0);
    return {
      byAgent: vanished.includes(agent) || holders.some((holder) => holder.agent === agent),
      forMs: left.length > 0 ? Math.min(...left) : undefined,
    };
  }

  #refs(lockKeys: readonly string[]): readonly LockRef[] {
    return lockKeys.map((key) => this.#scripts.lockOf(key)).filter((lock) => lock !== undefined);
  }
}
