import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Schedule, untilNext } from '../schedule.ts';
import { type Service, service } from '../service.ts';
import type { RunRecord } from './run-record.ts';
import { pauseMs } from './source-state.ts';
import type { Sync } from './sync.ts';
import { LEASE_MS } from './sync-lock.ts';

export interface PollerOptions {
  readonly sync: Sync;
  /** The source it asks for. */
  readonly source: string;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
}

/** Whoever is at it may have died at it: then its lock is over by now. */
const AFTER_BUSY_MS = LEASE_MS + 1_000;

/** The longest that a timer can sleep. */
const FOREVER_MS = 2 ** 31 - 1;

/** Asks for a sync at the start and then as often as the schedule and the state of the source say. */
export function poller({ sync, source, schedule, clock, log, random = Math.random }: PollerOptions): Service {
  return service(`poller of ${source}`, async (signal) => {
    const loop = (async () => {
      for (let trigger = 'start' as 'start' | 'schedule'; !signal.aborted; trigger = 'schedule') {
        const [ticket] = sync.ask(source, { trigger });
        const run = await ticket!.done;
        const pause = await nextPause(run).catch((error: unknown) => {
          log.debug('the state of the source is not known', { source, problem: reason(error) });
          return untilNext(schedule, clock.now(), random);
        });
        await clock.sleep(Math.min(FOREVER_MS, pause), signal);
      }
    })();
    return () => loop;
  });

  async function nextPause(run: RunRecord): Promise<number> {
    const { records } = sync.runner(source);
    const { state, failures } = await records.read();
    const untilTurn = untilNext(schedule, clock.now(), random);
    const scheduledMs = run.outcome === 'busy' ? Math.min(AFTER_BUSY_MS, untilTurn) : untilTurn;
    const retryAfterSeconds = run.problem?.retry_after_seconds;
    const pause = pauseMs({ state, failures, retryAfterSeconds, scheduledMs, random });
    if (Number.isFinite(pause)) await records.setNext(new Date(clock.now() + pause).toISOString());
    return pause;
  }
}
