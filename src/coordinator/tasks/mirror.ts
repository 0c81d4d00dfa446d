import { type Clock, jittered } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { ReeveEvent } from '../../events/catalogue.ts';
import type { Tail } from '../../events/tail.ts';
import type { Logger } from '../../log.ts';
import { isId } from '../../redis/ids.ts';
import { every, group, type Service, service } from '../../service.ts';
import { mirror } from './scripts.ts';
import type { TaskStore } from './task-store.ts';

export interface MirrorOptions {
  readonly store: TaskStore;
  readonly tail: Pick<Tail, 'listen'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const PERIOD_MS = 500;
const BATCH = 500;
/**
 * Not every change of status has an event of its own, a pause after a failure that is over for one, and a daemon that starts
 * has missed some: all tasks are looked at in turns, so many at once.
 */
const SLICE_MS = 5_000;

/** What also changes the status of those that wait. */
const MOVES_DEPENDENTS = new Set(['task_completed', 'task_failed', 'task_cancelled', 'task_reopened']);

/**
 * Keeps `task:queue:pending` and `task:status:{id}`, the names another document reserves for the same queue. Nobody reads
 * them here, and what others write there is overwritten. They follow the events, so that no claim has to wait for them.
 * Without a project in their name the list can be of one project only: the default one.
 */
export class TaskMirror {
  readonly #options: MirrorOptions;
  #changed = new Set<string>();
  #ended = new Set<string>();
  #isQueueChanged = true;
  /** Where the next slice begins. */
  #from = 0;
  /** After a start they follow one another, until all have been looked at. */
  #isFirstRound = true;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: MirrorOptions) {
    this.#options = options;
  }

  service(): Service {
    const { tail, clock, log } = this.#options;
    const listening = service('task events', async () => tail.listen((event) => this.hear(event)));
    const copying = every('task mirror', {
      clock,
      pauseMs: () => jittered(PERIOD_MS),
      tick: () => this.once(),
      onError: (error) => log.warn('mirroring tasks failed, trying again', { problem: reason(error) }),
    });
    return group('task mirror', [listening, copying]);
  }

  hear({ stream, event, payload }: ReeveEvent): void {
    if (stream !== 'work') return;
    this.#isQueueChanged = true;
    const ids = Array.isArray(payload.tasks) ? payload.tasks : [payload.task_id];
    // Anyone may write to the stream, and anything.
    for (const id of ids) if (isId('task', id)) this.#changed.add(id);
    if (MOVES_DEPENDENTS.has(event) && isId('task', payload.task_id)) this.#ended.add(payload.task_id);
  }

  /** Copies what changed since. Answers with how many tasks were looked at. */
  async once(): Promise<number> {
    const { clock } = this.#options;
    const isDue = this.#isFirstRound || clock.now() - this.#lookedAt >= SLICE_MS;
    if (!isDue && !this.#isQueueChanged) return 0;
    const [changed, ended, isQueueChanged] = [this.#changed, this.#ended, this.#isQueueChanged];
    this.#changed = new Set();
    this.#ended = new Set();
    this.#isQueueChanged = false;
    try {
      const ids = [...new Set([...changed, ...(await this.#dependents(ended))])];
      const copied = isQueueChanged ? await this.#copy(ids) : 0;
      return isDue ? copied + (await this.#lookOver()) : copied;
    } catch (error) {
      // Once more, for which of them were copied is unknown.
      for (const id of changed) this.#changed.add(id);
      for (const id of ended) this.#ended.add(id);
      this.#isQueueChanged ||= isQueueChanged;
      throw error;
    }
  }

  async #copy(ids: readonly string[]): Promise<number> {
    const { store } = this.#options;
    let copied = 0;
    for (let at = 0; at === 0 || at < ids.length; at += BATCH) {
      const tasks = ids.slice(at, at + BATCH);
      const queue = at === 0 ? this.#queue : 0;
      copied += await store.scripts.run(mirror, {}, { ...store.common(), tasks, looks: 0, queue });
    }
    return copied;
  }

  /** Without a project in its name the list is that of the default one. */
  get #queue(): number {
    return Number(this.#options.store.isDefaultProject);
  }

  async #lookOver(): Promise<number> {
    const { store, clock } = this.#options;
    const redis = store.connection.commands;
    const tasks = await redis.zrange(store.keys.knownTasks(), String(this.#from), String(this.#from + BATCH - 1));
    const looked = await store.scripts.run(mirror, {}, { ...store.common(), tasks, looks: 1, queue: this.#queue });
    this.#lookedAt = clock.now();
    const isLast = tasks.length < BATCH;
    this.#from = isLast ? 0 : this.#from + BATCH;
    if (isLast) this.#isFirstRound = false;
    return looked;
  }

  async #dependents(ended: ReadonlySet<string>): Promise<string[]> {
    const { connection, keys } = this.#options.store;
    const waiting = await Promise.all([...ended].map((id) => connection.commands.smembers(keys.dependents(id))));
    return waiting.flat();
  }
}
