import { Gathering } from '../../redis/gathering.ts';
import type { TaskId } from '../../redis/ids.ts';
import type { Script } from '../../redis/script.ts';
import type { InLine, Lines, Wish } from './lines.ts';
import type { LockRef } from './lock.ts';
import type { LockScripts } from './lock-scripts.ts';
import { acquire, acquires, NOBODY_ALONG, release, releases } from './scripts.ts';

/** The lock of a task, to be had without any wish but the lease, or to be given back; on one server. */
export interface UsualRelease {
  readonly lock: TaskLock;
  readonly agent: string;
  readonly lock_id: string;
}
export interface UsualAcquire extends UsualRelease {
  readonly lease_us: number;
  readonly purpose: string;
}
export type TaskLock = LockRef & { readonly kind: 'task' };

/** How many requests share one step: as many as Redis does in a fifth of a millisecond. */
const TOGETHER = 16;
const EXCLUSIVE_TASK = 'tx';
const USUAL = { lease_class: 'process', hold_us: 0 } as const;

/**
 * Usual requests that come in one turn of the event loop go to Redis together, but for the first, which waits for nobody. What
 * turns out not to be usual there, or got no answer, is asked for alone, by the script that knows every case.
 */
export class LockTurns {
  readonly #scripts: LockScripts;
  readonly #lines: Lines;
  readonly #acquires: Gathering<UsualAcquire, readonly string[]>;
  readonly #releases: Gathering<UsualRelease, readonly string[]>;
  readonly #endTurn = () => {
    this.#isTurn = false;
  };
  #isTurn = false;

  constructor(scripts: LockScripts, lines: Lines) {
    this.#scripts = scripts;
    this.#lines = lines;
    this.#acquires = new Gathering((asked) => this.#together(acquires, asked, acquireTexts, this.#acquire), TOGETHER);
    this.#releases = new Gathering((asked) => {
      const answers = this.#together(releases, asked, releaseTexts, this.#release);
      for (const { lock } of asked) this.#lines.next(lock)?.call();
      return answers;
    }, TOGETHER);
  }

  acquire(asked: UsualAcquire): Promise<readonly string[]> {
    return this.#isFirst() ? this.#acquire(asked) : this.#acquires.ask(asked);
  }

  release(asked: UsualRelease): Promise<readonly string[]> {
    return this.#isFirst() ? this.#handOver(asked) : this.#releases.ask(asked);
  }

  #isFirst(): boolean {
    if (this.#isTurn) return false;
    this.#isTurn = true;
    process.nextTick(this.#endTurn);
    return true;
  }

  async #together<Q extends UsualRelease>(
    script: Script<never, never, { asked: 'json' }, readonly string[]>,
    asked: readonly Q[],
    texts: (one: Q) => readonly string[],
    alone: (one: Q) => Promise<readonly string[]>,
  ): Promise<readonly (readonly string[] | Promise<readonly string[]>)[]> {
    if (asked.length === 1) return asked.map(alone);
    const flat: string[] = [];
    for (const one of asked) flat.push(this.#scripts.taskLock(one.lock.id), one.agent, one.lock_id, ...texts(one));
    const answers = await this.#scripts.scripts.run(script, {}, { asked: flat }).catch(() => []);
    return asked.map((one, at) => (answers[at] ? answers[at].split(' ') : alone(one)));
  }

  readonly #acquire = ({ lock, agent, lock_id, lease_us, purpose }: UsualAcquire): Promise<readonly string[]> => {
    const keys = this.#keys(lock.id);
    const args = { shape: EXCLUSIVE_TASK, agent, lock_id, lease_us, purpose, wait: '', ...USUAL };
    return this.#scripts.run(lock, () => this.#scripts.scripts.run(acquire, keys, args));
  };

  readonly #release = (asked: UsualRelease, next?: Wish): Promise<readonly string[]> => {
    const { lock, agent, lock_id } = asked;
    const keys = this.#keys(lock.id);
    const args = { shape: EXCLUSIVE_TASK, agent, lock_id, forget: 0, ...(next ? along(next) : NOBODY_ALONG) };
    return this.#scripts.run(lock, () => this.#scripts.scripts.run(release, keys, args));
  };

  /** Gives a lock back, and asks for it on behalf of who is next; that one goes on first. */
  #handOver(asked: UsualRelease): Promise<readonly string[]> {
    const next = this.#lines.next(asked.lock);
    if (!next?.wish) return this.#giveBack(asked, next);
    const answer = this.#release(asked, next.wish);
    next.asked(answer.then(([, ...granted]) => (granted.length > 0 ? granted : undefined)));
    return answer.then(afterOthers);
  }

  #giveBack(asked: UsualRelease, next: InLine | undefined): Promise<readonly string[]> {
    const answer = this.#release(asked);
    next?.call();
    return answer;
  }

  #keys(id: TaskId): { readonly all: readonly string[] } {
    return { all: [this.#scripts.taskLock(id)] };
  }
}

const acquireTexts = ({ lease_us, purpose }: UsualAcquire) => [String(lease_us), purpose];
const along = ({ lock_id, lease_us, purpose }: Wish) => ({
  next_id: lock_id,
  next_lease_us: lease_us,
  next_purpose: purpose,
});
const releaseTexts = () => [];
const afterOthers = <T>(answer: T): Promise<T> => new Promise((resolve) => process.nextTick(resolve, answer));
