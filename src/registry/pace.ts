import { createPace } from '../clock.ts';

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
