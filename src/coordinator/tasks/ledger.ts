import type { Clock } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { type Service, service } from '../../service.ts';
import { writeUp } from './scripts.ts';
import type { TaskStore } from './task-store.ts';

export interface LedgerOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long what was left waits for more of its kind, which then share the work. */
const PAUSE_MS = 10;
/** How long a claim waits for its completion: one that ends at once need not be entered anywhere. */
const YOUNG_MS = 20;
/** Entries of one call, of up to sixteen steps each: Redis does nothing else meanwhile. */
const AT_ONCE = 8;

/**
 * What usual claims and completions leave for later: indexes, statistics, the audit. It lies in Redis, so that nothing is lost with a
 * daemon, and every script over tasks writes it up before it looks; here is who does so when nobody comes by.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  /** Steps since the last time, as far as this daemon knows. */
  #left = 0;
  #isWaiting = false;
  #running: Promise<unknown> | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** A daemon may have died with something left; and this one leaves nothing behind. */
  service(): Service {
    return service('task ledger', async () => {
      await this.writeUpOnce();
      return async () => {
        await this.writeUpOnce().catch((error: unknown) => this.#leave(error));
      };
    });
  }

  /** So many steps left something. Waits only where that is more than may be left. */
  note(steps: number): Promise<void> | undefined {
    const { unwritten } = this.#options.store;
    this.#left += steps;
    if (this.#left > unwritten) return this.current();
    if (this.#left > unwritten / 2) this.#writeUpSoon();
    else if (!this.#isWaiting) void this.#wait(PAUSE_MS);
    return undefined;
  }

  /** For those who are about to read what follows from the steps of this daemon. */
  async current(): Promise<void> {
    if (this.#left > 0 || this.#isWaiting || this.#running) await this.writeUpOnce();
  }

  /** Writes up all that is left. Answers with how many steps that were. */
  async writeUpOnce(): Promise<number> {
    return (await this.#writeUp(0)).written;
  }

  async #writeUp(youngMs: number): Promise<{ written: number; kept: number }> {
    const { store } = this.#options;
    let written = 0;
    for (;;) {
      this.#left = 0;
      const args = { ...store.list(), most: AT_ONCE, young: youngMs * 1000 };
      const [some, kept] = await store.scripts.run(writeUp, {}, args);
      if (some === 0) return { written, kept };
      written += some;
    }
  }

  async #wait(ms: number): Promise<void> {
    this.#isWaiting = true;
    await this.#options.clock.sleep(ms);
    this.#isWaiting = false;
    this.#writeUpSoon();
  }

  #writeUpSoon(): void {
    if (this.#running) return;
    this.#running = this.#writeUp(YOUNG_MS)
      .then(({ kept }) => kept)
      .catch((error: unknown) => this.#leave(error))
      .then((kept) => {
        this.#running = undefined;
        if (kept > 0 && !this.#isWaiting) void this.#wait(YOUNG_MS);
      });
  }

  /** Whatever is left is still there, and the next script that looks finds it. */
  #leave(error: unknown): number {
    this.#options.log.debug('writing up tasks failed', { problem: reason(error) });
    return 0;
  }
}
