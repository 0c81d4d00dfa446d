import { Cluster, type Redis } from 'ioredis';
import { ReeveError } from '../../errors.ts';
import type { LockRef } from './lock.ts';
import type { Locks } from './locks.ts';

const PAGE = 100;
/** Scanning passes over other keys quickly; it is the looking at locks that costs. */
const SCAN = 1_000;
const STEPS = 20;

/**
 * Walks the indexes of agents and resource types, a stretch at each call and round again, and removes what no lock bears
 * out. Hardly anything ever is there: what a crash left between two calls, or a key that ended while nobody swept.
 */
export class IndexScrub {
  readonly #locks: Locks;
  #node = 0;
  #cursor = '0';
  readonly #found: string[] = [];
  #member = '0';

  constructor(locks: Locks) {
    this.#locks = locks;
  }

  /** Goes on until a stretch of the walk is done, or all of it: one call mends a small estate, a large one takes several. */
  async stretchOnce(): Promise<number> {
    let [orphans, checked] = [0, 0];
    for (let steps = 0; steps < STEPS && checked < PAGE; steps++) {
      const step = await this.#step();
      orphans += step.orphans;
      checked += step.checked;
      if (step.isRound && this.#found.length === 0) break;
    }
    return orphans;
  }

  /** The whole walk at once. */
  async all(): Promise<number> {
    let orphans = 0;
    for (let ended = false; !ended || this.#found.length > 0; ) {
      const step = await this.#step();
      orphans += step.orphans;
      ended ||= step.isRound;
    }
    return orphans;
  }

  async #step(): Promise<{ readonly orphans: number; readonly checked: number; readonly isRound: boolean }> {
    const isRound = this.#found.length === 0 && (await this.#find());
    const key = this.#found[0];
    if (key === undefined) return { orphans: 0, checked: 0, isRound };
    const { connection } = this.#locks.scripts;
    const [next, members] = await connection.commands.sscan(key, this.#member, 'COUNT', PAGE);
    this.#member = next;
    if (next === '0') this.#found.shift();
    const orphans = await Promise.all(members.map((member) => this.#check(key, member)));
    return { orphans: orphans.filter(Boolean).length, checked: members.length, isRound };
  }

  async #find(): Promise<boolean> {
    const client = this.#locks.scripts.connection.commands;
    const nodes: readonly Redis[] = client instanceof Cluster ? client.nodes('master') : [client];
    const node = nodes[this.#node];
    if (!node) {
      this.#node = 0;
      return true;
    }
    const [next, keys] = await node.scan(this.#cursor, 'MATCH', 'ade:lock:index:*', 'COUNT', SCAN);
    this.#found.push(...keys.filter((key) => this.#locks.scripts.ownerOf(key) !== undefined));
    this.#cursor = next;
    if (next !== '0') return false;
    this.#node = (this.#node + 1) % nodes.length;
    return this.#node === 0;
  }

  async #check(key: string, member: string): Promise<boolean> {
    const owner = this.#locks.scripts.ownerOf(key);
    const lock: LockRef | undefined = this.#locks.scripts.lockOf(member);
    if (!lock) {
      await this.#locks.scripts.connection.commands.srem(key, member);
      return true;
    }
    const seen = await this.#locks.look(lock).catch((error: unknown) => {
      // What cannot be looked at bears out nothing and refutes nothing.
      if (error instanceof ReeveError && error.code === 'REDIS_KEY_FOREIGN') return undefined;
      throw error;
    });
    if (!seen || seen.holders.some(({ agent }) => owner?.agent === undefined || owner.agent === agent)) return false;
    await this.#locks.reapFor(lock, owner?.agent);
    return true;
  }
}
