import { setFlagsFromString } from 'node:v8';

/** How much the heap may grow beyond what is in use before it is swept, in percent. Left alone it would double. */
const GROWTH_PERCENT = 30;

/**
 * Keeps the memory of a process that runs for months near what it needs. A sync of many assets fills the heap for a moment;
 * by default that moment would set its size for good. The other half of this is --max-semi-space-size in bin/reeve.
 */
export const keepHeapSmall = (): void => setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
