import type { Bench } from './harness.ts';
import { cycleFigures } from './queue-cycles.ts';
import { drainFigures } from './queue-drain.ts';
import { scaleFigures } from './queue-scale.ts';

/** Handing out work and taking it back, alone and in a crowd, and what waits for what. */
export const queue: Bench = {
  name: 'queue',
  summary: 'claim and complete against BullMQ, dependencies, and many tasks; one process, no append-only file',
  run: async (surroundings) => [
    ...(await cycleFigures(surroundings)),
    ...(await drainFigures(surroundings)),
    ...(await scaleFigures(surroundings)),
  ],
};
