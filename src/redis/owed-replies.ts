import type { Clock } from '../clock.ts';

/** As much of a command of ioredis as matters here. */
interface Sent {
  readonly isSettled: boolean;
  reject(error: Error): void;
}

export interface OwedRepliesOptions {
  readonly clock: Clock;
  readonly patienceMs: number;
  /** How many bytes have come in so far. */
  readonly received: () => number;
  /** Nothing at all came in for that long, though something was owed. */
  readonly giveUp: (error: Error) => void;
}

const LOOKS_PER_PATIENCE = 4;
const GONE: Sent = { isSettled: true, reject: () => {} };

/**
 * The replies that a connection owes. A command that waits too long for its own fails, and so does a connection on which
 * nothing moves. Replies come in the order of the commands, so one look at the oldest now and then does for all of them:
 * a timer for each command would cost more than sending it. Time is counted in looks, which no clock that jumps can forge.
 */
export class OwedReplies {
  readonly #options: OwedRepliesOptions;
  readonly #end = new AbortController();
  #sent: Sent[] = [];
  /** At which look each of them was new. */
  #since: number[] = [];
  #oldest = 0;
  #look = 0;
  #isWatching = false;

  constructor(options: OwedRepliesOptions) {
    this.#options = options;
  }

  add(command: Sent): void {
    this.#forgetSettled();
    this.#sent.push(command);
    this.#since.push(this.#look);
    if (!this.#isWatching) void this.#watch();
  }

  /** Up to the oldest that is owed, all are answered; some after it may be, too. */
  get count(): number {
    return this.#sent.length - this.#oldest;
  }

  close(): void {
    this.#end.abort();
  }

  async #watch(): Promise<void> {
    const { clock, patienceMs, received } = this.#options;
    const { signal } = this.#end;
    this.#isWatching = true;
    let [bytes, movedAt] = [received(), this.#look];
    while (this.#isOwing() && !signal.aborted) {
      await clock.sleep(patienceMs / LOOKS_PER_PATIENCE, signal);
      if (signal.aborted) break;
      this.#look++;
      if (received() !== bytes) [bytes, movedAt] = [received(), this.#look];
      this.#failOverdue(movedAt);
    }
    this.#isWatching = false;
  }

  /** A command that was new at a look came after it: only one look later than the looks say has it had its whole time. */
  #failOverdue(movedAt: number): void {
    const overdue = this.#look - LOOKS_PER_PATIENCE;
    const isStuck = this.#isOwing() && this.#since[this.#oldest]! < overdue && movedAt <= overdue;
    for (let at = this.#oldest; at < this.#sent.length && this.#since[at]! < overdue; at++)
      if (!this.#sent[at]!.isSettled) this.#sent[at]!.reject(new Error('Command timed out'));
    if (isStuck) this.#options.giveUp(new Error('Socket timed out'));
  }

  #isOwing(): boolean {
    this.#forgetSettled();
    return this.#oldest < this.#sent.length;
  }

  /** Moves on; makes room only when there is much to forget. A command holds its reply, so that it is let go of at once. */
  #forgetSettled(): void {
    while (this.#oldest < this.#sent.length && this.#sent[this.#oldest]!.isSettled) this.#sent[this.#oldest++] = GONE;
    if (this.#oldest < 1024) return;
    this.#sent = this.#sent.slice(this.#oldest);
    this.#since = this.#since.slice(this.#oldest);
    this.#oldest = 0;
  }
}
