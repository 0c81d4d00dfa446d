import { actorText } from '../../actor.ts';
import { ReeveError } from '../../errors.ts';
import { Gathering } from '../../redis/gathering.ts';
import { GENERAL, lanesFor } from '../agents/matcher.ts';
import type { LeaseClass } from '../locks/lock.ts';
import { skill } from './admission.ts';
import type { Ledger } from './ledger.ts';
import { usualClaims, usualCompletions } from './scripts.ts';
import type { TaskStore } from './task-store.ts';

type Reply = readonly string[];
type Texts = readonly string[];

/** How many requests share one step: as many as Redis does in about half a millisecond. */
const TOGETHER = 16;
const UNUSUAL = 'UNUSUAL';

/**
 * Claims and completions with nothing unusual about them. Those of one moment share a step in Redis, and what follows from them is
 * left to the ledger. Where something is unusual nothing has happened, and the answer is undefined: whoever asked turns to the
 * script that knows every case.
 */
export class UsualWork {
  readonly #claims: Gathering<Texts, Reply>;
  readonly #completions: Gathering<Texts, Reply>;

  constructor({ store, ledger }: { readonly store: TaskStore; readonly ledger: Ledger }) {
    const left = async (asked: Promise<readonly Reply[]>) => {
      const replies = await asked;
      const steps = replies.filter(([word]) => word === 'CLAIMED' || word === 'COMPLETED').length;
      if (steps > 0) await ledger.note(steps);
      return replies;
    };
    this.#claims = new Gathering(
      (claims) => left(store.scripts.run(usualClaims, {}, { head: store.head, claims: claims.flat() })),
      TOGETHER,
    );
    this.#completions = new Gathering(
      (ends) => left(store.scripts.run(usualCompletions, {}, { ...store.list(), completions: ends.flat() })),
      TOGETHER,
    );
  }

  claim({ agent, lockId, leaseClass, type = GENERAL, capabilities = [] }: UsualClaim): Promise<Reply | undefined> {
    const skills = spaced(capabilities.map(skill));
    return usual(this.#claims.ask([agent, lockId, type, leaseClass, spaced(lanesFor(type)), skills, actorText()]));
  }

  complete({ task, agent, lock_id, token, rest, say_raw }: UsualCompletion): Promise<Reply | undefined> {
    return usual(this.#completions.ask([task, agent, lock_id, token, rest, `${say_raw}`, actorText()]));
  }
}

export interface UsualClaim {
  readonly agent: string;
  readonly lockId: string;
  readonly leaseClass: LeaseClass;
  readonly type?: string | undefined;
  readonly capabilities?: readonly string[] | undefined;
}

/** As complete.lua takes it. */
export interface UsualCompletion {
  readonly task: string;
  readonly agent: string;
  readonly lock_id: string;
  readonly token: string;
  readonly rest: string;
  readonly say_raw: number;
}

/** Whether it was done is for the script to say that knows every case: to it, the same request again is the same request. */
async function usual(asked: Promise<Reply>): Promise<Reply | undefined> {
  try {
    const reply = await asked;
    return reply[0] === UNUSUAL ? undefined : reply;
  } catch (error) {
    if (error instanceof ReeveError && error.code === 'REDIS_REPLY_UNKNOWN') return undefined;
    throw error;
  }
}

/** Neither lanes nor skills have a space in them. */
const spaced = (words: readonly string[]): string => ` ${words.join(' ')} `;
