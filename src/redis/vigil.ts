import type { Clock } from '../clock.ts';

/** As much of a command of ioredis as matters here. */
interface Sent {
  readonly isSettled: boolean;
}

export interface VigilOptions {
  readonly clock: Clock;
  /** Runs this in the next turn of the event loop, and keeps the loop from falling asleep until then. */
  readonly inNextTurn?: (work: () => void) => void;
}

/** How many turns of a loop with nothing else to do an answer is worth: together about a seventh of a millisecond. */
const TURNS = 128;
/** Commands that are further apart do not follow each other. */
const FOLLOWS_MS = 2;
/** After so many in vain no more of the commands between two tries go by. */
const MOST_VAIN = 10;

/**
 * Stays awake for an answer that is about to come. A process that falls asleep between question and answer is woken by the
 * server at the price of some ten microseconds on either side, which is what a script takes: whoever asks one thing after the
 * other waits longer for the sleep than for the work. Being awake that short costs no more processor than being woken. Who asks
 * now and then is not waited for, so that nothing is spent where nothing happens; and where answers take longer, as over a
 * network, it is tried ever less often: twice as many commands go by after each vigil in vain.
 */
export class Vigil {
  readonly #clock: Clock;
  readonly #inNextTurn: (work: () => void) => void;
  readonly #turn = () => this.#look();
  #awaited: Sent | undefined;
  #turnsLeft = 0;
  #askedAt = 0;
  #vain = 0;
  #goBy = 0;

  constructor({ clock, inNextTurn = setImmediate }: VigilOptions) {
    this.#clock = clock;
    this.#inNextTurn = inNextTurn;
  }

  /** Of a command that was sent while no other was under way. */
  begin(command: Sent): void {
    const now = this.#clock.now();
    const isFollowing = now - this.#askedAt <= FOLLOWS_MS;
    this.#askedAt = now;
    if (!isFollowing) return;
    if (this.#goBy > 0) {
      this.#goBy--;
      return;
    }
    const isAwake = this.#awaited !== undefined;
    if (this.#awaited?.isSettled) this.#vain = 0;
    this.#awaited = command;
    this.#turnsLeft = TURNS;
    if (!isAwake) this.#inNextTurn(this.#turn);
  }

  #look(): void {
    if (this.#awaited?.isSettled) {
      this.#vain = 0;
    } else if (--this.#turnsLeft > 0) {
      this.#inNextTurn(this.#turn);
      return;
    } else {
      this.#vain = Math.min(this.#vain + 1, MOST_VAIN);
      this.#goBy = 2 ** this.#vain;
    }
    this.#awaited = undefined;
  }
}
