import { randomUUID } from 'node:crypto';
import { backOff, type Clock } from '../../clock.ts';
import { ReeveError, reason } from '../../errors.ts';
import type { Ending } from './attempt.ts';
import { type AgentCard, type Claimed, type ClaimWish, isPassing, type WorkClient } from './work-client.ts';

export interface HostOptions {
  readonly card: AgentCard;
  readonly leaseClass: ClaimWish['leaseClass'];
  /** Takes so many tasks and no more. */
  readonly limit: number;
  readonly work: WorkClient;
  readonly clock: Clock;
  /** Stops claiming; what runs goes on. */
  readonly draining: AbortSignal;
  readonly attempt: (held: Claimed) => Promise<Ending>;
  readonly say: (text: string) => void;
}

export type Tally = Readonly<Record<Ending['outcome'], number>>;

/** One call waits this long for a task; a proxy between may not like longer ones. */
const WAIT_SECONDS = 20;
const AGAIN_MS = 500;
const FAREWELL_MS = 2_000;
const AGAIN_AT_MOST_MS = 30_000;
/** What a former life of ours holds is back within a lease. */
const FULL_AT_MOST_MS = 5_000;
/** An answer that nothing is there, though we asked to wait, came too fast if it came within this. */
const TOO_FAST_MS = 1_000;

/** An agent that works: claims, runs what it claimed, up to `concurrency` at a time, until it is told to stop. */
export async function hostAgent(options: HostOptions): Promise<Tally> {
  const host = new AgentHost(options);
  return host.run();
}

class AgentHost {
  readonly #options: HostOptions;
  readonly #running = new Map<string, Promise<void>>();
  readonly #tally = { done: 0, failed: 0, dropped: 0, lost: 0 };
  #taken = 0;
  /** Ends in a row for which no task was to blame: more of the same would only burn more tasks. */
  #troubles = 0;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  async run(): Promise<Tally> {
    const { draining, limit, card, work, say } = this.#options;
    const announce = () => this.#announceEnd();
    draining.addEventListener('abort', announce, { once: true });
    try {
      await this.#patiently(() => work.register(card));
      while (!draining.aborted && this.#taken < limit) {
        await this.#freePlace();
        if (this.#troubles > 0) await this.#pause(this.#troubles - 1, 1_000, 60_000);
        if (draining.aborted) break;
        const held = await this.#claim();
        if (held) this.#begin(held);
      }
    } catch (error) {
      // A person drained this agent: that is a way to tell it to stop.
      if (!(error instanceof ReeveError && error.code === 'AGENT_CLOSED')) throw error;
      say(error.message);
    } finally {
      await Promise.all(this.#running.values());
      draining.removeEventListener('abort', announce);
      // Only its card says so: nobody waits for it, and a daemon that is away is not waited for.
      await work.finish(card, AbortSignal.timeout(FAREWELL_MS)).catch(() => {});
    }
    return this.#tally;
  }

  #announceEnd(): void {
    const tasks = [...this.#running.keys()].join(', ');
    if (tasks) this.#options.say(`waiting for the end of ${tasks}; a second signal kills and gives back`);
  }

  async #freePlace(): Promise<void> {
    const { card, draining } = this.#options;
    if (this.#running.size < card.concurrency) return;
    const told = aborted(draining);
    await Promise.race([told.promise, ...this.#running.values()]);
    told.letGo();
  }

  /** The next task; undefined when told to stop. The claim has an id of its own: to repeat it never takes two. */
  async #claim(): Promise<Claimed | undefined> {
    const { work, card, leaseClass, draining, clock } = this.#options;
    const lockId = randomUUID();
    const ask = (waitSeconds: number, signal: AbortSignal) =>
      work.claim(card, { lockId, leaseClass, waitSeconds }, signal);
    for (let inVain = 0; !draining.aborted; ) {
      const askedAt = clock.now();
      const held = await this.#patiently(() => ask(WAIT_SECONDS, draining));
      if (held && held.lease.lock_id === lockId) return held;
      if (held && inVain === 0) this.#sayFull(held);
      inVain = clock.now() - askedAt < TOO_FAST_MS ? inVain + 1 : 0;
      if (inVain > 0) await this.#pause(inVain - 1, AGAIN_MS, FULL_AT_MOST_MS);
    }
    await this.#returnUnseen(lockId, () => ask(0, AbortSignal.timeout(2_000)));
    return undefined;
  }

  /** With all its places taken an agent is told again what it has; a claim of ours it is not. */
  #sayFull({ task: { task_id: id } }: Claimed): void {
    const { card, say } = this.#options;
    const whose = this.#running.has(id) ? 'its places are fewer than --concurrency' : `somebody of that name has ${id}`;
    say(`${card.agent} has its hands full: ${whose}. Trying on.`);
  }

  /** The daemon may have granted what we no longer waited for; nobody would work on it until its lease ends. */
  async #returnUnseen(lockId: string, ask: () => Promise<Claimed | undefined>): Promise<void> {
    const { work } = this.#options;
    const held = await ask().catch(() => undefined);
    if (held?.lease.lock_id !== lockId) return;
    await work.drop(held, 'its worker was told to stop').catch(() => undefined);
  }

  #begin(held: Claimed): void {
    const { attempt, say } = this.#options;
    const { task_id: id } = held.task;
    this.#taken++;
    say(`${id}: ${held.task.title || 'begun'} (attempt ${held.lease.attempt})`);
    const running = attempt(held)
      .then((ending) => this.#count(ending))
      .catch((error: unknown) => {
        this.#count({ outcome: 'lost', exitCode: 1 });
        say(`${id}: ${reason(error)}`);
      })
      .finally(() => this.#running.delete(id));
    this.#running.set(id, running);
  }

  #count({ outcome, class: kind }: Ending): void {
    this.#tally[outcome]++;
    const isOurs = outcome === 'failed' && kind !== 'task' && kind !== 'timeout' && kind !== 'cancelled';
    this.#troubles = isOurs ? this.#troubles + 1 : 0;
  }

  /** Waits out a daemon that is away. Undefined when told to stop meanwhile. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const { draining, say } = this.#options;
    for (let failures = 0; !draining.aborted; failures++) {
      try {
        return await ask();
      } catch (error) {
        if (draining.aborted) return undefined;
        if (!isPassing(error)) throw error;
        if (failures === 0) say(`${reason(error)} Trying on.`);
        await this.#pause(failures);
      }
    }
    return undefined;
  }

  #pause(attempt: number, base = AGAIN_MS, most = AGAIN_AT_MOST_MS): Promise<void> {
    const { clock, draining } = this.#options;
    return clock.sleep(backOff(attempt, base, most), draining);
  }
}

/** A promise of the abort that can be let go of, so that a signal of long life does not gather listeners. */
function aborted(signal: AbortSignal): { readonly promise: Promise<void>; letGo(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onAbort = () => resolve();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', onAbort, { once: true });
  return { promise, letGo: () => signal.removeEventListener('abort', onAbort) };
}
