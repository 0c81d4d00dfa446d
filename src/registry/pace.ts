import { setImmediate as turn } from 'node:timers/promises';

const STRETCH_MS = 8;

/** Asked between pieces of a long computation: lets the event loop turn when a stretch has lasted long enough. */
export function createPace(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < STRETCH_MS) return undefined;
    return turn().then(() => {
      began = performance.now();
    });
  };
}

/** map() that lets the event loop turn. */
export async function pacedMap<T, R>(all: Iterable<T>, make: (one: T) => R): Promise<R[]> {
  const made: R[] = [];
  const pace = createPace();
  for (const one of all) {
    made.push(make(one));
    const pause = pace();
    if (pause) await pause;
  }
  return made;
}
