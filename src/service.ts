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

/** Makes a Service of a function that sets up and returns how to tear down. The signal is aborted when stop begins. */
export function service(name: string, setUp: (signal: AbortSignal) => Promise<TearDown | undefined>): Service {
  let life: AbortController | undefined;
  let tearDown: TearDown | undefined;
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>) => {
    turn = turn.catch(() => {}).then(step);
    return turn;
  };
  return {
    name,
    start: () =>
      inTurn(async () => {
        if (life) return;
        const born = new AbortController();
        try {
          tearDown = await setUp(born.signal);
          life = born;
        } catch (error) {
          born.abort();
          throw error;
        }
      }),
    stop: () =>
      inTurn(async () => {
        if (!life) return;
        life.abort();
        life = undefined;
        const last = tearDown;
        tearDown = undefined;
        await last?.();
      }),
  };
}

/** Starts in order and stops in reverse. A failed start unwinds what had started; one failing stop never skips the rest. */
export function group(name: string, members: readonly Service[], watch: GroupWatch = {}): Service {
  return service(name, async () => {
    const started: Service[] = [];
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
        watch.starting?.(member.name);
        await member.start();
        started.push(member);
      }
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
  readonly tick: (signal: AbortSignal) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

/** A loop: one tick at a time, never overlapping, errors reported and survived; stop waits for the tick in hand. */
export function every(name: string, { clock, pauseMs, tick, onError }: LoopOptions): Service {
  return service(name, async (signal) => {
    const loop = (async () => {
      while (!signal.aborted) {
        await tick(signal).catch(onError);
        await clock.sleep(pauseMs(), signal);
      }
    })();
    return () => loop;
  });
}
