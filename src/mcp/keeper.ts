import type { Clock } from '../clock.ts';
import type { Operation } from '../operations/operation.ts';
import type { Ask } from './ask.ts';

export interface KeeperOptions {
  readonly ask: Ask;
  readonly operations: readonly Operation[];
  readonly clock: Clock;
}

/** A third of the lease of a language model: two of three beats may fail. */
const BEAT_MS = 300_000;
/** For all that is left to be given back, when the client has gone. */
const GOODBYE_MS = 5_000;

/** Something a client has, and how it is kept and given back. */
interface Kept {
  readonly beat: readonly [operation: string, input: object];
  readonly giveBack: readonly [operation: string, input: object];
}

/**
 * Keeps what a client has for as long as it is there: whoever asks through a process of its own cannot be taken for dead while that
 * lives, however long a model thinks. When the client goes away, its tasks and locks are given back at once, rather than when
 * their leases end.
 */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #end = new AbortController();

  constructor(options: KeeperOptions) {
    this.#options = options;
    void this.#beat();
  }

  /** Asks, and notes what the answer gives or takes. */
  readonly ask: Ask = async (operation, input, signal) => {
    const answer = await this.#options.ask(operation, input, signal);
    this.#note(operation.name, input as Values, (answer ?? {}) as Values);
    return answer;
  };

  /** Gives back what is left. */
  async close(): Promise<void> {
    this.#end.abort();
    const left = [...this.#kept.values()];
    this.#kept.clear();
    const soon = AbortSignal.timeout(GOODBYE_MS);
    await Promise.allSettled(left.map(({ giveBack: [name, input] }) => this.#say(name, input, soon)));
  }

  /** Everything that is kept is beaten once. What is lost is not kept any more: whoever works on is told by its next call. */
  async beatOnce(): Promise<void> {
    const beats = [...this.#kept].map(
      async ([
        id,
        {
          beat: [name, input],
        },
      ]) => {
        try {
          await this.#say(name, input, this.#end.signal);
        } catch (error) {
          if (isLost(error)) this.#kept.delete(id);
        }
      },
    );
    await Promise.all(beats);
  }

  async #beat(): Promise<void> {
    const { signal } = this.#end;
    for (;;) {
      await this.#options.clock.sleep(BEAT_MS, signal);
      if (signal.aborted) return;
      await this.beatOnce();
    }
  }

  async #say(name: string, input: object, signal: AbortSignal): Promise<unknown> {
    const operation = this.#options.operations.find((one) => one.name === name);
    return operation && this.#options.ask(operation, input, signal);
  }

  #note(name: string, input: Values, answer: Values): void {
    if (name === 'work.claim') this.#keepTask(answer);
    else if (name === 'lock.acquire') this.#keepLock(input, answer);
    else if (ENDS.includes(name)) this.#kept.delete(idOf(input.task, input.lock_id));
    else if (name === 'lock.release') this.#kept.delete(idOf(input.key, input.lock_id));
  }

  #keepTask({ task, lease }: Values): void {
    const { task_id } = (task ?? {}) as Values;
    const { agent_id, lock_id } = (lease ?? {}) as Values;
    if (!task_id || !lock_id) return;
    const named = { task: task_id, agent: agent_id, lock_id };
    this.#kept.set(idOf(task_id, lock_id), {
      beat: ['work.heartbeat', named],
      giveBack: ['work.drop', { ...named, reason: 'its client went away' }],
    });
  }

  /** A place in line is kept by asking again; only what is held needs a beat. */
  #keepLock({ lock, agent }: Values, { outcome, lock_id }: Values): void {
    if (outcome !== 'held') return;
    const named = { key: lock, agent, lock_id };
    this.#kept.set(idOf(lock, lock_id), { beat: ['lock.heartbeat', named], giveBack: ['lock.release', named] });
  }
}

type Values = Readonly<Record<string, unknown>>;
const idOf = (...parts: readonly unknown[]): string => JSON.stringify(parts);
const ENDS = ['work.finish', 'work.complete', 'work.fail', 'work.drop'];
const LOST = ['LEASE_LOST', 'LOCK_LOST', 'TASK_UNKNOWN'];
const isLost = (error: unknown): boolean => LOST.includes((error as { code?: string }).code ?? '');
