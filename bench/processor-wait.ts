import { readFileSync } from 'node:fs';

/**
 * How long the main thread of a process was ready to work while the machine ran something else, since it began. What is
 * taken out of a measured stretch by it is the machine's share, and never time in which the thread itself was at work or
 * waited for a disk. 0 where the system does not tell: then nothing is taken out.
 */
export function processorWaitMs(pid: number): number {
  try {
    const [, waitedNs = '0'] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waitedNs) / 1e6;
  } catch {
    return 0;
  }
}
