import { type Clock, jittered } from './clock.ts';
import { type Service, service } from './service.ts';

export interface LookoutOptions {
  readonly clock: Clock;
  /** About how long from one look to the next while there is word of something. */
  readonly periodMs: number;
  /** About how long without a word: words may be missed. */
  readonly quietMs: number;
  readonly look: (signal: AbortSignal) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

/**
 * A loop that looks when it is told that there may be something, and sleeps until then: it is no reason to wake up a daemon at
 * rest. Several words soon after another are one look. Looks never overlap; stop waits for the one in hand.
 */
export class Lookout {
  readonly service: Service;
  readonly #options: LookoutOptions;
  #lookedAt = 0;
  #lookAt = 0;
  #alarm: AbortController | undefined;

  constructor(name: string, options: LookoutOptions) {
    this.#options = options;
    this.service = service(name, async (signal) => {
      this.#lookAt = 0;
      const loop = this.#loop(signal);
      return () => loop;
    });
  }

  /** There may be something, after the delay. What is told during a look is looked at in the next one. */
  told(delayMs = 0): void {
    const { clock, periodMs } = this.#options;
    const now = clock.now();
    // Never longer than the period, however the clock was set meanwhile.
    const restMs = Math.min(this.#lookedAt + periodMs - now, periodMs);
    this.#wakeAt(now + Math.max(delayMs, restMs));
  }

  #wakeAt(at: number): void {
    if (at >= this.#lookAt) return;
    this.#lookAt = at;
    this.#alarm?.abort();
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { clock, periodMs, quietMs, look, onError } = this.#options;
    while (!signal.aborted) {
      const leftMs = this.#lookAt - clock.now();
      if (leftMs > 0) {
        await this.#sleep(leftMs, signal);
        continue;
      }
      this.#lookedAt = clock.now();
      this.#lookAt = this.#lookedAt + jittered(quietMs);
      try {
        await look(signal);
      } catch (error) {
        onError(error);
        this.#wakeAt(clock.now() + jittered(periodMs));
      }
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const alarm = new AbortController();
    const ring = () => alarm.abort();
    this.#alarm = alarm;
    signal.addEventListener('abort', ring, { once: true });
    await this.#options.clock.sleep(ms, alarm.signal);
    signal.removeEventListener('abort', ring);
    this.#alarm = undefined;
  }
}
