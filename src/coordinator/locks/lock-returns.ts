import { argsOf, lockOf, oneTask, partsOf } from './asked.ts';
import type { ClusterIndexes } from './cluster-indexes.ts';
import type { Lines } from './lines.ts';
import type { ReleaseOutcome } from './lock.ts';
import type { LockScripts } from './lock-scripts.ts';
import type { LockTurns } from './lock-turns.ts';
import { type Asked, releaseOutcomes } from './replies.ts';
import { NOBODY_ALONG, release } from './scripts.ts';

export interface LockReturnsOptions {
  readonly scripts: LockScripts;
  readonly turns: LockTurns;
  readonly lines: Lines;
  readonly indexes: ClusterIndexes | undefined;
}

/** Gives locks back, and calls whoever of this process is next. */
export class LockReturns {
  readonly #scripts: LockScripts;
  readonly #turns: LockTurns;
  readonly #lines: Lines;
  readonly #indexes: ClusterIndexes | undefined;

  constructor({ scripts, turns, lines, indexes }: LockReturnsOptions) {
    this.#scripts = scripts;
    this.#turns = turns;
    this.#lines = lines;
    this.#indexes = indexes;
  }

  /** Forgotten: as if it had never been granted, for a caller that could not get the rest. */
  async release(asked: Asked, isForgotten: boolean): Promise<readonly ReleaseOutcome[]> {
    const outcomes: ReleaseOutcome[] = [];
    for (const part of partsOf(asked, this.#scripts)) {
      const reply = await this.#releasePart(part, isForgotten);
      outcomes.push(...releaseOutcomes(reply, part));
      // A lock that is lost but not yet swept must stay where the sweeper finds it. One that was given back before may have
      // left its entries, if that call ended halfway.
      if (outcomes.at(-1)?.outcome !== 'lost') await this.#indexes?.ended(lockOf(part), part.agent);
    }
    return outcomes;
  }

  #releasePart(part: Asked, isForgotten: boolean): Promise<readonly string[]> {
    const lock = isForgotten ? undefined : oneTask(part, this.#scripts);
    if (lock) return this.#turns.release({ lock, agent: part.agent, lock_id: part.lockId });
    const args = { ...argsOf(part, this.#scripts), forget: Number(isForgotten), ...NOBODY_ALONG };
    const reply = this.#scripts.run(lockOf(part), () =>
      this.#scripts.scripts.run(release, this.#scripts.all(part.wanted), args),
    );
    for (const { lock } of part.wanted) this.#lines.next(lock)?.call();
    return reply;
  }
}
