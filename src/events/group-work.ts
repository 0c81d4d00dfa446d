import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { Lookout } from '../lookout.ts';
import type { Connection } from '../redis/connection.ts';
import { type Service, service, group as together } from '../service.ts';
import type { ReeveEvent, StreamName } from './catalogue.ts';
import type { EventLog } from './event-log.ts';
import { GROUPS, GroupConsumer, type GroupName } from './group.ts';
import type { Tail } from './tail.ts';

export interface GroupWorkOptions {
  readonly connection: Connection;
  readonly events: EventLog;
  readonly group: GroupName;
  /** Names this consumer: one name for each life of a daemon. */
  readonly worker: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Does what the group is for, with events of one stream in their order. They are acknowledged after it, so that it may see one
   * again after a crash: it knows events by stream and id.
   */
  readonly handle: (events: readonly ReeveEvent[]) => Promise<void>;
  /** Says that there is something new; without a word it is looked for now and then. */
  readonly tail: Pick<Tail, 'listen'>;
  /** How long after the word; several events are then one look. */
  readonly delayMs?: number | undefined;
}

/** What it takes to work once. */
export type GroupHands = Omit<GroupWorkOptions, 'tail' | 'delayMs'>;

const PERIOD_MS = 500;
const QUIET_MS = 30_000;
const BATCH = 200;
/** One that has not acknowledged for so long is taken for dead. */
const LEFT_LYING_MS = 60_000;
const FORGET_MS = 24 * 3_600_000;

/** A consumer of a group for as long as the daemon runs. Daemons on one Redis share its events. */
export function groupWork(options: GroupWorkOptions): Service {
  const { clock, tail, group, log, delayMs = 0 } = options;
  const streams: ReadonlySet<StreamName> = new Set(GROUPS[group]);
  const consumer = new GroupWork(options);
  let isFailing = false;
  const lookout = new Lookout(group, {
    clock,
    periodMs: PERIOD_MS,
    quietMs: QUIET_MS,
    look: async (signal) => {
      await consumer.workOnce(signal);
      if (isFailing) log.info('a consumer of events works again', { group });
      isFailing = false;
    },
    onError: (error) => {
      if (!isFailing) log.warn('a consumer of events failed, trying again', { group, problem: reason(error) });
      isFailing = true;
    },
  });
  const ear = service(`ear of ${group}`, async () =>
    tail.listen(({ stream }) => {
      if (streams.has(stream)) lookout.told(delayMs);
    }),
  );
  return together(group, [ear, lookout.service]);
}

/** The work of one consumer of a group, over all streams of the group. */
export class GroupWork {
  readonly #options: GroupHands;
  readonly #consumers: readonly GroupConsumer[];
  #forgetAt = 0;
  #isReady = false;

  constructor(options: GroupHands) {
    const { connection, events, group, worker: consumer } = options;
    this.#options = options;
    this.#consumers = GROUPS[group].map((stream) => new GroupConsumer({ connection, events, stream, group, consumer }));
  }

  /** Handles all there is, and returns how much. What it could not handle stays its own and comes first the next time. */
  async workOnce(signal?: AbortSignal, { leftLyingMs = LEFT_LYING_MS } = {}): Promise<number> {
    let handled = 0;
    if (!this.#isReady) for (const consumer of this.#consumers) await consumer.ensure();
    // Whatever goes wrong, the groups may be gone: FLUSHALL takes them along.
    this.#isReady = false;
    for (const consumer of this.#consumers) {
      const sources = [
        () => consumer.mine(BATCH),
        () => consumer.takeOver(leftLyingMs, BATCH),
        () => consumer.take(BATCH),
      ];
      for (const source of sources) handled += await this.#drain(consumer, source, signal);
    }
    await this.#forgetGone();
    this.#isReady = true;
    return handled;
  }

  async #drain(consumer: GroupConsumer, source: () => Promise<ReeveEvent[]>, signal?: AbortSignal): Promise<number> {
    let handled = 0;
    while (!signal?.aborted) {
      const taken = await source();
      if (taken.length === 0) break;
      await this.#options.handle(taken);
      await consumer.acknowledge(taken);
      handled += taken.length;
    }
    return handled;
  }

  async #forgetGone(): Promise<void> {
    const now = this.#options.clock.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_MS;
    for (const consumer of this.#consumers) await consumer.forgetGone(FORGET_MS);
  }
}
