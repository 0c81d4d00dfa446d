import type { Clock } from './clock.ts';

/**
 * A part of the daemon that runs. start() resolves when it is ready; stop() resolves when nothing of it is left.
 * Both may be called at any time, twice, or crossed: calls take turns, so there are never two lives at once.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export type TearDown = () => Promise<void> | void;

/**
 * Makes a Service of a function that sets up and returns how to tear down. The signal is aborted when stop is called,
 * also while the start is still under way, so that a long start can be given up.
 */
export function service(name: string, setUp: (signal: AbortSignal) => Promise<TearDown | undefined>): Service {
  // Also those whose turn has not come: a stop gives up every start that was asked for before it.
  const starting = new Set<AbortController>();
  let life: AbortController | undefined;
  let tearDown: TearDown | undefined;
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>) => {
    turn = turn.catch(() => {}).then(step);
    return turn;
  };
  return {
    name,
    start: () => {
      const born = new AbortController();
      starting.add(born);
      return inTurn(async () => {
        try {
          if (life) return;
          tearDown = await setUp(born.signal);
          life = born;
        } catch (error) {
          born.abort();
          throw error;
        } finally {
          starting.delete(born);
        }
      });
    },
    stop: () => {
      for (const born of starting) born.abort();
      return inTurn(async () => {
        if (!life) return;
        life.abort();
        life = undefined;
        const last = tearDown;
        tearDown = undefined;
        await last?.();
      });
    },
  };
}

/** Starts in order and stops in reverse. A failed start unwinds what had started; one failing stop never skips the rest. */
export function group(name: string, members: readonly Service[], watch: GroupWatch = {}): Service {
  return service(name, async (signal) => {
    const started: Service[] = [];
    let current: Service | undefined;
    signal.addEventListener('abort', () => void current?.stop().catch((error: unknown) => watch.unwindFailed?.(error)));
    const unwind = async () => {
      const errors: unknown[] = [];
      for (const member of started.reverse()) {
        watch.stopping?.(member.name);
        await member.stop().catch((error: unknown) => errors.push(error));
      }
      if (errors.length > 0) throw new AggregateError(errors, `${name}: ${errors.length} part(s) did not stop cleanly`);
    };
    try {
      for (const member of members) {
        signal.throwIfAborted();
        watch.starting?.(member.name);
        current = member;
        await member.start();
        started.push(member);
      }
      current = undefined;
    } catch (error) {
      await unwind().catch((also: unknown) => watch.unwindFailed?.(also));
      throw error;
    }
    return unwind;
  });
}

/** Lets the owner of a group say what it is doing, so that a shutdown that hangs names what it waits for. */
export interface GroupWatch {
  starting?(member: string): void;
  stopping?(member: string): void;
  unwindFailed?(error: unknown): void;
}

export interface LoopOptions {
  readonly clock: Clock;
  /** Asked before each pause, so that a loop can back off or hurry. */
  readonly pauseMs: () => number;
  /** It pauses until something is due, rather than for about so long. */
  readonly isExact?: boolean;
  readonly tick: (signal: AbortSignal) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

/** A loop: one tick at a time, never overlapping, errors reported and survived; stop waits for the tick in hand. */
export function every(name: string, { clock, pauseMs, isExact = false, tick, onError }: LoopOptions): Service {
  return service(name, async (signal) => {
    const loop = (async () => {
      while (!signal.aborted) {
        try {
          await tick(signal);
        } catch (error) {
          onError(error);
        }
        const ms = pauseMs();
        await clock.sleep(isExact ? ms : onBeat(clock.now(), ms), signal);
      }
    })();
    return () => loop;
  });
}

/**
 * Loops that pause for long fall together on the half seconds of this process, give or take what their jitter is: a daemon at rest
 * then wakes up twice a second, not for each of them, and what they ask of Redis goes there together. Daemons have beats of their own.
 */
function onBeat(now: number, ms: number): number {
  if (ms < SHORTEST_MS) return ms;
  return Math.round((now + ms - PHASE_MS) / BEAT_MS) * BEAT_MS + PHASE_MS - now;
}
const BEAT_MS = 500;
const SHORTEST_MS = 400;
const PHASE_MS = Math.floor(Math.random() * BEAT_MS);
