import type { Redis } from 'ioredis';
import { systemClock as clock } from '../../../src/clock.ts';
import type { Board } from './board.ts';
import type { Random } from './plan.ts';

class Killed extends Error {}

export interface RawAgentOptions {
  readonly name: string;
  readonly client: Redis;
  readonly random: Random;
  readonly board: Board;
}

/**
 * An agent that knows nothing but the contract's Pattern 1 and 2. As a shell script it checks no answers: a command that the
 * server did not live to answer is simply not done. It may die between any two of them.
 */
export class RawAgent {
  readonly #options: RawAgentOptions;
  readonly #life = new AbortController();
  #isStopping = false;

  constructor(options: RawAgentOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  async run(): Promise<void> {
    try {
      while (!this.#isStopping) await this.#turn();
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    } finally {
      this.#options.client.disconnect();
    }
  }

  stop(): void {
    this.#isStopping = true;
  }

  kill(): undefined {
    this.#life.abort(new Killed());
    this.#options.client.disconnect();
    return undefined;
  }

  async #turn(): Promise<void> {
    const { name, random, board } = this.#options;
    const task = (await this.#say('RPOP', 'odyssey:task:queue')) as string | undefined;
    if (!task) return this.#work(50 + random.below(200));
    const needs = ((await this.#say('SMEMBERS', `odyssey:task:${task}:dependencies`)) ?? []) as string[];
    for (const need of needs) {
      const status = await this.#say('GET', `odyssey:task:${need}:status`);
      if (status === undefined || status === 'completed') continue;
      // What other plain clients wrote over a public status is put right in time; the truth must never have been so.
      const truth = await this.#say('HGET', `odyssey:coord:task:${need}`, 'status');
      if (truth !== undefined && truth !== 'completed')
        board.violations.push(`${task} was on the list while ${need}, which it needs, was ${JSON.stringify(truth)}`);
      await this.#say('SET', `odyssey:task:${task}:status`, 'blocked');
      await this.#say('LPUSH', 'odyssey:task:queue', task);
      return;
    }
    await this.#say('SET', `odyssey:task:${task}:status`, 'assigned');
    await this.#say('HSET', `odyssey:agent:${name}`, 'current_task', task);
    await this.#say('SET', `odyssey:task:${task}:status`, 'in_progress');
    await this.#say('HINCRBY', 'odyssey:progress', 'pending', '-1');
    await this.#say('HINCRBY', 'odyssey:progress', 'in_progress', '1');
    await this.#work(random.below(150));
    if (random.chance(0.03)) return this.#fail(task);
    await this.#say('SET', `odyssey:task:${task}:status`, 'completed');
    await this.#say('SET', `odyssey:task:${task}:result`, JSON.stringify({ task_id: task, notes: `done by ${name}` }));
    await this.#say('HINCRBY', 'odyssey:progress', 'in_progress', '-1');
    await this.#say('HINCRBY', 'odyssey:progress', 'completed', '1');
    board.count();
  }

  async #fail(task: string): Promise<void> {
    await this.#say('LPUSH', 'odyssey:errors:list', `${task}: it went wrong`);
    await this.#say('SET', `odyssey:task:${task}:status`, 'failed');
    await this.#say('HINCRBY', 'odyssey:progress', 'in_progress', '-1');
    await this.#say('HINCRBY', 'odyssey:progress', 'failed', '1');
  }

  /** Undefined: nobody answered, or nothing is there. */
  async #say(command: string, ...words: string[]): Promise<unknown> {
    const answer = await this.#options.client.call(command, ...words).catch(() => undefined);
    this.#life.signal.throwIfAborted();
    return answer ?? undefined;
  }

  async #work(ms: number): Promise<void> {
    await clock.sleep(ms, this.#life.signal).catch(() => {});
    this.#life.signal.throwIfAborted();
  }
}
