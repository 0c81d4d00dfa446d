import { type Clock, isoTime } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { type Contest, type Cycle, type Deadlock, findDeadlocks, type Holding } from './deadlock.ts';
import { formatLock, type LockRef, type LockView } from './lock.ts';
import type { Locks } from './locks.ts';

export interface DetectorOptions {
  readonly locks: Locks;
  readonly clock: Clock;
  readonly log: Logger;
  /** The feature flag; asked on each run. */
  readonly isEnabled: () => Promise<boolean>;
  /** A circle must last this long to count: one heartbeat, so that a dead holder is told from a waiting one. */
  readonly confirmMs: () => Promise<number>;
}

/** One step of a circle, as it is told to the victim, to people and in the event. */
export interface CycleStep {
  readonly agent: string;
  readonly waits_for: string;
  readonly mode: string;
  readonly lock_id: string;
  /** Who is in the way: it holds the lock, or stands before it in line. */
  readonly behind: string;
  readonly by: 'holder' | 'queue';
}

export interface DetectCounts {
  readonly suspected: number;
  readonly aborted: number;
}

export interface WaitGraph {
  readonly views: readonly LockView[];
  readonly contests: readonly Contest[];
  readonly deadlocks: readonly Deadlock[];
}

/** Waits that are shorter than this mostly end by themselves. */
const PATIENCE_MS = 1_000;
const CHECK_SECONDS = 30;
const NOTHING: DetectCounts = { suspected: 0, aborted: 0 };

/**
 * Frees agents that wait for one another. The locks are not read at one instant, so a circle may be one that never was:
 * it is believed when it is there again, with the same requests and tokens, a heartbeat later; and the wait is ended only
 * if it is still the same one.
 */
export class DeadlockDetector {
  readonly #options: DetectorOptions;
  readonly #suspects = new Map<string, number>();

  constructor(options: DetectorOptions) {
    this.#options = options;
  }

  async detectOnce(): Promise<DetectCounts> {
    if (!(await this.#options.isEnabled())) {
      this.#suspects.clear();
      return NOTHING;
    }
    const views = await this.#options.locks.waitGraph();
    const now = Math.max(0, ...views.map(({ at }) => Date.parse(at)));
    const found = await this.#deadlocks(views, now);
    const prints = new Set(found.map(({ cycle }) => fingerprint(cycle)));
    for (const print of this.#suspects.keys()) if (!prints.has(print)) this.#suspects.delete(print);

    const confirmMs = await this.#options.confirmMs();
    let aborted = 0;
    for (const deadlock of found) {
      const print = fingerprint(deadlock.cycle);
      const since = this.#suspects.get(print);
      if (since === undefined) {
        if (await this.#mayCheck(deadlock.victim.waiting.agent)) this.#suspects.set(print, now);
      } else if (now - since >= confirmMs) {
        this.#suspects.delete(print);
        aborted += Number(await this.#abort(deadlock, views));
      }
    }
    return { suspected: this.#suspects.size, aborted };
  }

  /** The graph as it is now, with the circles in it, confirmed or not. */
  async look(): Promise<WaitGraph> {
    const views = await this.#options.locks.waitGraph();
    const now = Math.max(0, ...views.map(({ at }) => Date.parse(at)));
    return { views, contests: contestsOf(views), deadlocks: await this.#deadlocks(views, now) };
  }

  async #deadlocks(views: readonly LockView[], now: number): Promise<Deadlock[]> {
    const contests = contestsOf(views);
    if (findDeadlocks(contests).length === 0) return [];
    const applying = await this.#applying(contests);
    return findDeadlocks(contests, (agent) => applying.has(agent)).filter(({ cycle }) =>
      cycle.every(({ waiting }) => now - waiting.since / 1000 >= PATIENCE_MS),
    );
  }

  /** Who holds a task is applying it: the lease of a claimed task is its lock. */
  async #applying(contests: readonly Contest[]): Promise<ReadonlySet<string>> {
    const waiting = new Set(contests.flatMap(({ waiters }) => waiters.map(({ agent }) => agent)));
    const held = await Promise.all([...waiting].map(async (agent) => [agent, await this.#grantsOf(agent)] as const));
    return new Set(
      held.filter(([, grants]) => grants.some(({ lock }) => lock.kind === 'task')).map(([agent]) => agent),
    );
  }

  async #abort({ cycle, victim }: Deadlock, views: readonly LockView[]): Promise<boolean> {
    const { locks, log } = this.#options;
    const { agent, lockId, since } = victim.waiting;
    const lock = views.find(({ name }) => name === victim.lock)?.lock as LockRef;
    const steps = tellCycle(cycle, views);
    const wait = await locks.abortWaiter({ lock, agent, lockId, since, cycle: steps });
    if (wait === undefined) return false;
    const released = await this.#takeBack(agent);
    log.warn('a deadlock was broken', { victim: agent, lock: formatLock(lock), released, cycle: steps });
    return true;
  }

  /** What the victim took after its claim goes back; its tasks, and what it took together with them, stay. */
  async #takeBack(agent: string): Promise<string[]> {
    const grants = await this.#grantsOf(agent);
    const claims = new Set(grants.filter(({ lock }) => lock.kind === 'task').map(({ lockId }) => lockId));
    const loose = grants.filter(({ lockId }) => !claims.has(lockId));
    for (const { lock, lockId } of loose) await this.#options.locks.release({ locks: [lock], agent, lockId });
    return loose.map(({ lock }) => formatLock(lock));
  }

  async #grantsOf(agent: string): Promise<{ readonly lock: LockRef; readonly lockId: string }[]> {
    const grants = [];
    let cursor: string | undefined;
    do {
      const page = await this.#options.locks.list({ agent, ...(cursor && { cursor }) });
      for (const { lock, holders } of page.locks) {
        for (const holder of holders) if (holder.agent === agent) grants.push({ lock, lockId: holder.lockId });
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
    return grants;
  }

  /** An agent that falls into one circle after another is looked at every so often, not always. */
  async #mayCheck(agent: string): Promise<boolean> {
    const { connection, keys } = this.#options.locks.scripts;
    const at = isoTime(this.#options.clock);
    return (await connection.commands.set(keys.deadlockCheck(agent), at, 'EX', CHECK_SECONDS, 'NX')) === 'OK';
  }
}

/** Whoever waits for a place among several waits for any of them: that makes no circle. */
const contestsOf = (views: readonly LockView[]): Contest[] =>
  views.filter(({ lock }) => lock.kind !== 'agent').map(contestOf);

function contestOf({ name, holders, waiters }: LockView): Contest {
  return {
    lock: name,
    holders: holders
      .filter(({ state }) => state !== 'expired')
      .map(({ agent, lockId, token, mode }): Holding => ({ agent, lockId, token: String(token), mode })),
    waiters: waiters.filter(({ alive }) => alive),
  };
}

export function tellCycle(cycle: Cycle, views: readonly LockView[]): CycleStep[] {
  return cycle.map(({ lock, waiting, behind, kind }) => {
    const ref = views.find(({ name }) => name === lock)?.lock;
    return {
      agent: waiting.agent,
      waits_for: ref ? formatLock(ref) : lock,
      mode: waiting.mode,
      lock_id: waiting.lockId,
      behind: behind.agent,
      by: kind === 'hard' ? 'holder' : 'queue',
    };
  });
}

/** The same circle is the same requests behind the same requests, grants with their tokens; wherever one begins. */
const fingerprint = (cycle: Cycle): string =>
  cycle
    .map(({ lock, waiting, behind }) =>
      [lock, waiting.lockId, behind.lockId, 'token' in behind ? behind.token : ''].join('|'),
    )
    .toSorted()
    .join('\n');
