import { randomUUID } from 'node:crypto';
import { systemClock as clock } from '../../../src/clock.ts';
import type { Board, Held } from './board.ts';
import type { Random } from './plan.ts';

/** Dropped dead: whatever it was about to say, it does not. */
class Killed extends Error {}

export interface AgentOptions {
  readonly name: string;
  readonly url: string;
  readonly random: Random;
  readonly board: Board;
}

interface Answer {
  readonly status: number;
  readonly body: {
    task?: { task_id: string; files_to_modify: string[] };
    lease?: Lease;
    again?: boolean;
    code?: string;
  };
}
interface Lease {
  readonly lock_id: string;
  readonly fencing_token: string;
}

/**
 * An agent that speaks HTTP with the daemon: it repeats what was not answered, sometimes does not wait for an answer and
 * repeats all the same, completes twice, fails, gives back.
 */
export class ModernAgent {
  readonly #options: AgentOptions;
  readonly #life = new AbortController();
  #held: Held | undefined;
  #isStopping = false;

  constructor(options: AgentOptions) {
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
    }
  }

  /** Takes no further task. */
  stop(): void {
    this.#isStopping = true;
  }

  /** As kill -9: its connections break, and it forgets all. Answers with what it held, for one that wakes up too late. */
  kill(): Held | undefined {
    const held = this.#held;
    if (held) this.#options.board.leave(held);
    this.#life.abort(new Killed());
    return held;
  }

  async #turn(): Promise<void> {
    const { random, board, name } = this.#options;
    // Without an id of its own, a claim whose answer was lost is found again by the agent's name: it has one place.
    const claim = { wait: 1, lease_class: 'process', ...(random.chance(0.5) && { lock_id: randomUUID() }) };
    const { status, body } = await this.#ask(`/agents/${name}/claim`, claim);
    if (status !== 200 || !body.task || !body.lease) return this.#work(50);
    const { task_id: task, files_to_modify: files } = body.task;
    const held = { task, agent: name, lockId: body.lease.lock_id, token: body.lease.fencing_token, files };
    this.#held = held;
    board.enter(held);
    const speak = { agent: name, lock_id: held.lockId, fencing_token: held.token };
    if (random.chance(0.5)) await this.#ask(`/tasks/${task}/start`, speak);
    await this.#work(random.below(120));
    if (random.chance(0.1)) await this.#ask(`/tasks/${task}/heartbeat`, speak);
    board.leave(held);
    await this.#end(held, speak);
    this.#held = undefined;
  }

  async #end(held: Held, speak: object): Promise<void> {
    const { random, board } = this.#options;
    const say = (verb: string, more: object = {}) => this.#ask(`/tasks/${held.task}/${verb}`, { ...speak, ...more });
    const fate = random.next();
    if (fate < 0.02)
      return void (await say('fail', { error: 'it went wrong', class: random.one(['task', 'infra', 'auth']) }));
    if (fate < 0.04) return void (await say('drop', { reason: 'somebody else may' }));
    const { status, body } = await say('complete', { note: `done by ${held.agent}` });
    // Lost: fell silent for longer than its lease while nobody answered.
    if (status === 409) return;
    // Noted while Redis is away, to be done when it is back: nobody needs to say it again.
    if (status === 202) return board.count();
    if (status !== 200) throw new Error(`completing ${held.task} was answered with ${status} ${body.code}`);
    if (!body.again) board.completed(held);
    else board.count();
    if (random.chance(0.1)) {
      const second = await say('complete', { note: 'said twice' });
      if (second.status !== 202 && (second.status !== 200 || !second.body.again))
        board.violations.push(`the second completion of ${held.task} was answered with ${second.status}`);
    }
  }

  /** Until there is an answer. Now and then the first is not waited for: it may or may not have been heard. */
  async #ask(path: string, body: object): Promise<Answer> {
    const { url, random } = this.#options;
    let isLost = random.chance(0.05);
    for (;;) {
      this.#life.signal.throwIfAborted();
      const patience = isLost ? AbortSignal.timeout(1 + random.below(15)) : AbortSignal.timeout(20_000);
      isLost = false;
      try {
        const response = await fetch(url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: AbortSignal.any([this.#life.signal, patience]),
        });
        const answer = {
          status: response.status,
          body: response.status === 204 ? {} : await response.json(),
        } as Answer;
        this.#life.signal.throwIfAborted();
        if (answer.status < 500 && answer.status !== 429) return answer;
      } catch {
        // Nobody there, or cut off in the middle.
        this.#life.signal.throwIfAborted();
      }
      await this.#work(20 + random.below(80));
    }
  }

  async #work(ms: number): Promise<void> {
    await clock.sleep(ms, this.#life.signal).catch(() => {});
    this.#life.signal.throwIfAborted();
  }
}
