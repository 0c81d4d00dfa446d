/**
 * What agents believe to hold, as they were told: entered when the answer to a claim arrives, taken off before the end of
 * the work is sent. So an agent's time on the board lies within its lease, and two that exclude each other must never
 * be there together.
 */
export class Board {
  readonly violations: string[] = [];
  readonly #held = new Map<string, Held>();
  readonly #tokens = new Map<string, bigint>();
  #done = 0;
  readonly #waiting: { at: number; go: () => void }[] = [];

  enter(held: Held): void {
    const before = this.#held.get(held.task);
    if (before && before.lockId !== held.lockId)
      this.#blame(`${held.task} was given to ${held.agent} while ${before.agent} had it`);
    for (const other of this.#held.values()) {
      if (other.task !== held.task && overlaps(other.files, held.files))
        this.#blame(`${held.task} and ${other.task} were worked on at once and touch the same files`);
    }
    const last = this.#tokens.get(held.task) ?? 0n;
    const token = BigInt(held.token);
    if (token < last) this.#blame(`the fencing token of ${held.task} fell`);
    this.#tokens.set(held.task, token > last ? token : last);
    this.#held.set(held.task, held);
  }

  /** It ends its work, or is dead: nothing it does any more counts as held. */
  leave({ task, lockId }: Pick<Held, 'task' | 'lockId'>): void {
    if (this.#held.get(task)?.lockId === lockId) this.#held.delete(task);
  }

  /** A completion was accepted as the first: only of the lease that was granted last. */
  completed({ task, token, agent }: Held): void {
    if (BigInt(token) < (this.#tokens.get(task) ?? 0n))
      this.#blame(`${task} was completed by ${agent} under an old lease`);
    this.count();
  }

  /** Somebody finished something; it may be the moment for the next fault. */
  count(): void {
    this.#done++;
    while (this.#waiting[0] && this.#waiting[0].at <= this.#done) this.#waiting.shift()!.go();
  }

  /** Resolves when so many were finished. Asked in rising order. */
  reached(at: number): Promise<void> {
    if (this.#done >= at) return Promise.resolve();
    return new Promise((go) => {
      this.#waiting.push({ at, go });
    });
  }

  #blame(violation: string): void {
    this.violations.push(violation);
  }
}

export interface Held {
  readonly task: string;
  readonly agent: string;
  readonly lockId: string;
  readonly token: string;
  readonly files: readonly string[];
}

const overlaps = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((one) => others.some((other) => covers(one, other) || covers(other, one)));
const covers = (one: string, other: string): boolean => one === other || (one.endsWith('/') && other.startsWith(one));
