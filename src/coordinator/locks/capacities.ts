import { parseId } from '../../redis/ids.ts';
import type { Capacity, CapacityStatus, LockRef } from './lock.ts';
import type { LockReader } from './lock-reader.ts';
import type { LockScripts } from './lock-scripts.ts';
import { capacity } from './scripts.ts';

export interface CapacityChange {
  readonly maxTasks?: number | undefined;
  readonly status?: CapacityStatus | undefined;
}

/** How much each agent may do at once. The places themselves are taken and given back as locks. */
export class Capacities {
  readonly #scripts: LockScripts;
  readonly #reader: LockReader;

  constructor(scripts: LockScripts, reader: LockReader) {
    this.#scripts = scripts;
    this.#reader = reader;
  }

  async get(agent: string): Promise<Capacity | undefined> {
    return (await this.#reader.look(placeOf(agent))).capacity;
  }

  async set(agent: string, { maxTasks = 0, status }: CapacityChange): Promise<Capacity | undefined> {
    const lock = placeOf(agent);
    const wanted = [{ lock }];
    const args = { ...this.#scripts.common(wanted, agent), max_tasks: maxTasks, status: status ?? '' };
    const call = () => this.#scripts.scripts.run(capacity, this.#scripts.all(wanted), args);
    const [word] = await this.#scripts.run(lock, call);
    return word === 'SET' ? (await this.#reader.look(lock)).capacity : undefined;
  }

  async remove(agent: string): Promise<boolean> {
    const { lock, leases, queue, waiters, fence } = this.#scripts.lockKeys(placeOf(agent));
    const { connection, keys } = this.#scripts;
    const gone = await connection.commands.del(lock, leases as string, queue, waiters, fence);
    await connection.commands.zrem(keys.lockRegistry(), lock);
    await connection.commands.zrem(keys.waitedLocks(), lock);
    return gone > 0;
  }
}

const placeOf = (agent: string): LockRef => ({ kind: 'agent', id: parseId('agent', agent) });
