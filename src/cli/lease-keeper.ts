import type { Clock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import { type Ask, isJournalled, type Operation } from '../operations/operation.ts';
import { every, type Service } from '../service.ts';

type Values = Readonly<Record<string, unknown>>;

interface Call {
  readonly operation: string;
  readonly input: Values;
}

/** Something that a client has and that ends unless somebody beats for it. */
interface Held {
  readonly beat?: Call;
  readonly giveBack: Call;
}

/** Of a lease of fifteen minutes most beats may fail; and the first after a failure is not far. */
const EVERY_MS = 60_000;
const LOST: readonly string[] = ['LEASE_LOST', 'LOCK_LOST', 'TASK_UNKNOWN'];

/**
 * Keeps what a client was given alive for as long as the client lives, and gives it back when that goes away: a model that thinks cannot
 * send heartbeats. It learns of leases and locks from the answers that pass through it.
 */
export class LeaseKeeper {
  readonly #operations: readonly Operation[];
  readonly #ask: Ask;
  readonly #held = new Map<string, Held>();

  constructor(operations: readonly Operation[], ask: Ask) {
    this.#operations = operations;
    this.#ask = ask;
  }

  /** Asks, and remembers what the answer gives or takes away. */
  readonly ask: Ask = async (operation, input, signal) => {
    const [name, asked] = [operation.name, input as Values];
    try {
      const answer = await this.#ask(operation, input, signal);
      this.#learn(name, asked, answer as Values);
      return answer;
    } catch (error) {
      if (isLost(error)) this.#held.delete(idOf(name, asked));
      throw error;
    }
  };

  beating(clock: Clock): Service {
    return every('heartbeats of a client', {
      clock,
      pauseMs: () => EVERY_MS,
      tick: (signal) => this.beatOnce(signal),
      // Redis or the daemon is away: the leases outlive that for a while, and the next beat comes soon.
      onError: () => {},
    });
  }

  /** Answers with how many are still held. */
  async beatOnce(signal: AbortSignal): Promise<number> {
    const failures: unknown[] = [];
    for (const [id, { beat }] of [...this.#held]) {
      if (!beat || signal.aborted) continue;
      await this.#call(beat, signal).catch((error: unknown) => {
        if (isLost(error)) this.#held.delete(id);
        else failures.push(error);
      });
    }
    if (failures.length > 0) throw failures[0];
    return this.#held.size;
  }

  /** Gives everything back, what came last first. What cannot be given back ends by itself. */
  async giveBack(signal: AbortSignal): Promise<void> {
    const held = [...this.#held.values()].reverse();
    this.#held.clear();
    for (const { giveBack } of held) await this.#call(giveBack, signal).catch(() => {});
  }

  #call({ operation: name, input }: Call, signal: AbortSignal): Promise<unknown> {
    const operation = this.#operations.find((one) => one.name === name);
    return operation ? this.#ask(operation, input, signal) : Promise.resolve();
  }

  #learn(name: string, asked: Values, answer: Values): void {
    if (ENDING.includes(name)) this.#held.delete(idOf(name, asked));
    if (isJournalled(answer)) return;
    if (name === 'work.claim' && answer.lease) {
      const { task_id: task } = answer.task as { task_id: string };
      const { agent_id: agent, lock_id } = answer.lease as Record<string, string>;
      const input = { task, agent, lock_id };
      const giveBack = { operation: 'work.drop', input: { ...input, reason: 'its client went away' } };
      this.#held.set(`task ${task}`, { beat: { operation: 'work.heartbeat', input }, giveBack });
    }
    if (name === 'lock.acquire') {
      const { lock: key, agent, lock_id, outcome } = answer;
      const input = { key, agent, lock_id };
      const beat = { operation: 'lock.heartbeat', input };
      // A place in line is given back, too, but nobody beats for it: who asks no more has left it.
      const giveBack = { operation: 'lock.release', input };
      this.#held.set(`lock ${String(lock_id)}`, { ...(outcome === 'held' && { beat }), giveBack });
    }
  }
}

/** After these nothing is left to be kept, also where they were only noted. */
const ENDING: readonly string[] = ['work.finish', 'lock.release'];

const idOf = (name: string, { task, lock_id }: Values): string =>
  name.startsWith('lock.') ? `lock ${String(lock_id)}` : `task ${String(task)}`;

const isLost = (error: unknown): boolean => error instanceof ReeveError && LOST.includes(error.code);
