import { backOff, type Clock, isoTime, jittered } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { every, type Service } from '../service.ts';
import type { Store } from '../store/database.ts';
import type { DeliveryRow } from '../store/schema.ts';
import type { Lane } from './delivery.ts';
import { type Answer, type Post, post } from './post.ts';
import { signedHeaders } from './sign.ts';

/** Where the deliveries of a lane go. */
export interface Destination {
  readonly url: string;
  readonly secret?: string | undefined;
  readonly allowsPrivate: boolean;
}

export interface SenderLimits {
  readonly attempts: number;
  readonly timeoutMs: number;
  readonly retryMs: number;
  readonly keepDays: number;
}

export interface SenderOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Who sends: one name for each life of a daemon. */
  readonly worker: string;
  readonly limits: () => SenderLimits;
  /** `paused`: what waits, waits on. `gone`: there is nobody to send it to any more. */
  readonly destinationOf: (lane: Lane) => Promise<Destination | 'paused' | 'gone'>;
  /** Told of each attempt. */
  readonly onAnswer: (lane: Lane, answer: Answer) => Promise<void>;
}

const PERIOD_MS = 1_000;
const LONGEST_RETRY_MS = 3_600_000;
/** How many of a lane are sent in one turn, so that a busy one does not keep the others waiting. */
const TURN = 50;
const LANES_AT_ONCE = 8;
const PRUNE_MS = 3_600_000;

/**
 * Sends what waits. Within a lane one after another, in order: what fails holds up what is behind it until it gets through or is given
 * up. Lanes do not wait for each other. A daemon holds a lane while it sends; of one that dies another takes over.
 */
export class Sender {
  readonly #options: SenderOptions;
  #isWanted = true;
  #nextAt = 0;
  #pruneAt = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** There may be something to send. */
  wake(): void {
    this.#isWanted = true;
  }

  service(): Service {
    const { clock, log } = this.#options;
    let isFailing = false;
    return every('deliveries', {
      clock,
      pauseMs: () => jittered(this.#isWanted ? 20 : PERIOD_MS),
      tick: async (signal) => {
        if (!this.#isWanted && clock.now() < this.#nextAt) return;
        await this.sendDueOnce(signal);
        isFailing = false;
      },
      onError: (error) => {
        if (!isFailing) log.warn('sending deliveries failed, trying again', { problem: reason(error) });
        isFailing = true;
      },
    });
  }

  /** Sends what is due, and returns how many attempts that took. */
  async sendDueOnce(signal?: AbortSignal): Promise<number> {
    const { store, clock } = this.#options;
    this.#isWanted = false;
    // Another daemon may put something on its way, and does not tell.
    this.#nextAt = clock.now() + LOOK_MS;
    const lanes = (await store.db.selectFrom('delivery_lanes').select('lane').execute()).map(
      ({ lane }) => lane as Lane,
    );
    let attempts = 0;
    for (let at = 0; at < lanes.length && !signal?.aborted; at += LANES_AT_ONCE) {
      const some = lanes.slice(at, at + LANES_AT_ONCE).map((lane) => this.#lane(lane, signal));
      for (const sent of await Promise.all(some)) attempts += sent;
    }
    await this.#prune();
    return attempts;
  }

  async #lane(lane: Lane, signal: AbortSignal | undefined): Promise<number> {
    if (!(await this.#isDue(lane))) return 0;
    const destination = await this.#options.destinationOf(lane);
    if (destination === 'paused') return 0;
    if (!(await this.#hold(lane))) return 0;
    let attempts = 0;
    try {
      if (destination === 'gone') await this.#giveUp(lane);
      else attempts = await this.#sendTurn(lane, destination, signal);
    } finally {
      await this.#let(lane);
    }
    return attempts;
  }

  async #sendTurn(lane: Lane, destination: Destination, signal: AbortSignal | undefined): Promise<number> {
    for (let attempts = 0; ; attempts++) {
      const next = await this.#isDue(lane);
      if (!next || signal?.aborted) return attempts;
      if (attempts >= TURN) {
        this.#isWanted = true;
        return attempts;
      }
      if (attempts > 0 && !(await this.#hold(lane))) return attempts;
      const answer = await this.#attempt(next, destination, signal);
      // A daemon that stops has not learnt whether it arrived: tried again, by whoever comes next, and not counted.
      if (signal?.aborted && answer.outcome === 'failed') return attempts;
      await this.#record(next, answer);
      await this.#options.onAnswer(lane, answer);
      if (answer.outcome !== 'accepted') return attempts + 1;
    }
  }

  #attempt({ id, body }: DeliveryRow, { url, secret, allowsPrivate }: Destination, signal?: AbortSignal) {
    const { limits, clock } = this.#options;
    const headers = signedHeaders(secret, { id, seconds: Math.floor(clock.now() / 1000), body });
    const what: Post = { url, headers, body, timeoutMs: limits().timeoutMs, allowsPrivate };
    return post(what, signal);
  }

  async #record(row: DeliveryRow, answer: Answer): Promise<void> {
    const { store, clock, log, limits } = this.#options;
    const attempts = row.attempts + 1;
    const now = isoTime(clock);
    const facts = { delivery: row.id, lane: row.lane, event: row.event, attempts, answer: wording(answer) };
    const isDead = answer.outcome !== 'accepted' && attempts >= limits().attempts;
    if (isDead) log.error('a delivery was given up', facts);
    else log.debug('a delivery was tried', facts);
    const wait = this.#pauseAfter(answer, row.attempts);
    await store.db
      .updateTable('deliveries')
      .set({
        attempts,
        last_at: now,
        last_answer: wording(answer),
        ...(answer.outcome === 'accepted'
          ? { state: 'delivered', delivered_at: now }
          : { state: isDead ? 'dead' : 'waiting', next_at: new Date(clock.now() + wait).toISOString() }),
      })
      .where('id', '=', row.id)
      .execute();
    if (answer.outcome !== 'accepted' && !isDead) this.#nextAt = Math.min(this.#nextAt, clock.now() + wait);
    if (isDead) this.#isWanted = true;
  }

  /** As long as the receiver asks for, if it asks; else doubling. */
  #pauseAfter(answer: Answer, failures: number): number {
    const asked = answer.outcome === 'refused' ? answer.retryAfterMs : undefined;
    if (asked !== undefined) return Math.min(asked, LONGEST_RETRY_MS);
    return backOff(failures, this.#options.limits().retryMs, LONGEST_RETRY_MS);
  }

  /** The first of a lane, if its time has come. */
  async #isDue(lane: Lane): Promise<DeliveryRow | undefined> {
    const { store, clock } = this.#options;
    const first = await store.db
      .selectFrom('deliveries')
      .selectAll()
      .where('lane', '=', lane)
      .where('state', '=', 'waiting')
      .orderBy('position')
      .limit(1)
      .executeTakeFirst();
    if (!first) return undefined;
    if (first.next_at <= isoTime(clock)) return first;
    this.#nextAt = Math.min(this.#nextAt, Date.parse(first.next_at));
    return undefined;
  }

  /** Takes the lane or keeps it, for long enough to send one. */
  async #hold(lane: Lane): Promise<boolean> {
    const { store, clock, worker, limits } = this.#options;
    const until = new Date(clock.now() + limits().timeoutMs + HOLD_MS).toISOString();
    const taken = await store.db
      .updateTable('delivery_lanes')
      .set({ held_by: worker, held_until: until })
      .where('lane', '=', lane)
      .where((eb) => eb.or([eb('held_by', '=', worker), eb('held_until', '<', isoTime(clock))]))
      .executeTakeFirst();
    return Number(taken.numUpdatedRows) === 1;
  }

  async #let(lane: Lane): Promise<void> {
    const { store, worker } = this.#options;
    await store.db
      .updateTable('delivery_lanes')
      .set({ held_by: '', held_until: '' })
      .where('lane', '=', lane)
      .where('held_by', '=', worker)
      .execute();
  }

  async #giveUp(lane: Lane): Promise<void> {
    const { store, clock } = this.#options;
    await store.db
      .updateTable('deliveries')
      .set({ state: 'dead', last_at: isoTime(clock), last_answer: 'there is no such receiver any more' })
      .where('lane', '=', lane)
      .where('state', '=', 'waiting')
      .execute();
  }

  /** What is done with is kept for a while, to be looked at. */
  async #prune(): Promise<void> {
    const { store, clock, limits } = this.#options;
    if (clock.now() < this.#pruneAt) return;
    this.#pruneAt = clock.now() + PRUNE_MS;
    const before = new Date(clock.now() - limits().keepDays * DAY_MS).toISOString();
    await store.db.deleteFrom('deliveries').where('created_at', '<', before).where('state', '!=', 'waiting').execute();
  }
}
const LOOK_MS = 15_000;
const HOLD_MS = 20_000;
const DAY_MS = 86_400_000;

const wording = (answer: Answer): string => {
  if (answer.outcome === 'accepted') return String(answer.status);
  if (answer.outcome === 'failed') return answer.says;
  return `${answer.status} ${answer.says}`.trim();
};
