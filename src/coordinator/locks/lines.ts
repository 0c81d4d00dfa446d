import { type LockRef, lockName } from './lock.ts';

/** Somebody of this process who stands in the line of a lock. */
export interface InLine {
  /** As far as it has heard. */
  isNext(): boolean;
  /** It should ask. */
  call(): void;
  /** What it asks for; undefined if that is not usual, and it must ask for itself. */
  readonly wish?: Wish | undefined;
  /** It was asked for: this is the answer, or nothing if it was not its turn. */
  asked(answer: Promise<readonly string[] | undefined>): void;
}

export interface Wish {
  readonly lock_id: string;
  readonly lease_us: number;
  readonly purpose: string;
}

/**
 * Who of this process stands in which line. Whoever gives a lock back here takes the question of the next one along, or calls it
 * at once, so that its question follows the release on the same connection: the word of the lock's channel would take both ways
 * once more. It is a hint as that word is: Redis decides, and whoever waits elsewhere hears the channel.
 */
export class Lines {
  readonly #lines = new Map<string, Set<InLine>>();

  /** Returns how to leave. */
  enter(lock: LockRef, one: InLine): () => void {
    const name = lockName(lock);
    const line = this.#lines.get(name) ?? new Set();
    this.#lines.set(name, line.add(one));
    return () => {
      line.delete(one);
      if (line.size === 0 && this.#lines.get(name) === line) this.#lines.delete(name);
    };
  }

  next(lock: LockRef): InLine | undefined {
    if (this.#lines.size === 0) return undefined;
    for (const one of this.#lines.get(lockName(lock)) ?? []) if (one.isNext()) return one;
    return undefined;
  }
}
