import { decodeId } from '../../redis/ids.ts';
import { resourceClaims } from './collisions.ts';
import { taskResource } from './found.ts';
import type { Pause } from './lease.ts';
import { pause, reconsider } from './scripts.ts';
import type { TaskStore } from './task-store.ts';

export interface PauseOf {
  /** all, a type of agent, or `resource:TYPE:ID`. */
  readonly what: string;
  readonly pause: Pause;
}

/** Tasks looked at in one step: Redis does nothing else meanwhile. */
const SLICE = 500;

/**
 * What is paused, and that the tasks follow it. A pause holds at once: claims and the public list ask for it. That each
 * of its tasks is blocked, and counted so, follows slice by slice, for there may be any number; a daemon that dies in
 * between leaves the rest to whoever looks next.
 */
export class Pauses {
  readonly #store: TaskStore;
  #followed = '{}';
  /** A daemon that has just begun does not know how far others came; nor one that stopped half-way. */
  #isSure = false;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  /** `all`, a type of agent, or `resource:TYPE:ID`. Answers with how many tasks the public list shows since. */
  async pause(wanted: string, why: Pause): Promise<number> {
    const { what, mark } = pausable(wanted);
    return this.#change(what, JSON.stringify({ ...why, ...(mark && { mark }) }), mark);
  }

  async resume(wanted: string): Promise<number> {
    const { what, mark } = pausable(wanted);
    return this.#change(what, '', mark);
  }

  async list(): Promise<PauseOf[]> {
    const found = Object.entries(await this.#read());
    return found.map(([what, text]) => ({ what, pause: JSON.parse(text) as Pause }));
  }

  /** Lets the tasks follow what is paused now, if that is not what they followed last. Answers with how many moved. */
  async followOnce(): Promise<number> {
    const wanted = JSON.stringify(await this.#read());
    if (this.#isSure && wanted === this.#followed) return 0;
    this.#isSure = false;
    const { keys } = this.#store;
    let moved = 0;
    // Those that wait for the end of a running task are ready all the same.
    for (const set of [keys.parkedOrder(), keys.readyOrder(), keys.pausedTasks()]) moved += await this.#follow(set);
    this.#followed = wanted;
    this.#isSure = true;
    return moved;
  }

  async #change(what: string, value: string, mark: string): Promise<number> {
    const { connection, keys, scripts } = this.#store;
    await scripts.run(pause, {}, { ...this.#store.common(), what, value, mark });
    this.#isSure = false;
    await this.followOnce();
    return connection.commands.llen(keys.taskQueue());
  }

  /** By score, so that what leaves the set meanwhile moves nothing past us. */
  async #follow(key: string): Promise<number> {
    const { connection } = this.#store;
    let [moved, after] = [0, '-inf'];
    for (;;) {
      const found = await connection.commands.zrangebyscore(key, after, '+inf', 'WITHSCORES', 'LIMIT', 0, SLICE);
      if (found.length === 0) return moved;
      moved += await this.#reconsider(found.filter((_, at) => at % 2 === 0));
      after = `(${found.at(-1)}`;
    }
  }

  #reconsider(tasks: readonly string[]): Promise<number> {
    return this.#store.scripts.run(reconsider, {}, { ...this.#store.common(), tasks });
  }

  #read(): Promise<Record<string, string>> {
    const { connection, keys } = this.#store;
    return connection.commands.hgetall(keys.pauses());
  }
}

/** What can be paused, by its one name: two spellings of a path are one thing. And where it stands among the marks, if it is one. */
function pausable(wanted: string): { readonly what: string; readonly mark: string } {
  if (!wanted.startsWith('resource:')) return { what: wanted, mark: '' };
  const [claim] = resourceClaims([taskResource(wanted)]);
  return { what: `resource:${claim!.type}:${decodeId(claim!.id)}`, mark: claim!.mark };
}
