import { type Clock, isoTime } from '../clock.ts';
import type { TaskState } from '../coordinator/tasks/task.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError } from '../errors.ts';
import { petitionOf } from './assessor.ts';
import { type Delegation, followersOf, MOST_HOPS } from './delegation.ts';
import type { DelegationStore } from './delegation-store.ts';
import type { ApprovalDesk } from './desk.ts';
import { whyNot } from './eligibility.ts';
import type { Escalation } from './escalation.ts';
import { canBeMet, inPlaceOf, withoutFollowers } from './need.ts';
import { objection } from './objection.ts';
import { canReview, goesBy, type People, type Person } from './people.ts';
import type { Petition } from './policy.ts';
import { type AnswerAction, type ApprovalRequest, needsSchema } from './request.ts';
import { delegate, respond, withdraw } from './scripts.ts';
import { type Terms, termArgs } from './terms.ts';

export interface AnswersOptions {
  readonly tasks: Tasks;
  readonly desk: ApprovalDesk;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly terms: () => Promise<Terms>;
  readonly escalation: Escalation;
  readonly clock: Clock;
}

export interface Answer {
  readonly approval: string;
  readonly action: AnswerAction;
  readonly reason: string;
  /** Config hash of what was looked at; none: whatever it is now. */
  readonly hash?: string | undefined;
}

export interface How {
  /** Only say what would stand against each. */
  readonly isDry?: boolean;
  /** What passes is handed out before all else. */
  readonly isFirst?: boolean;
  /** JSON for the audit. */
  readonly detail?: string;
}

/** How one answer fared: the state of its task since, or what stood against it. */
export type AnswerOutcome =
  | { readonly approval: string; readonly state: TaskState; readonly again: boolean }
  | { readonly approval: string; readonly error: ReeveError };

/** What people say to what they were asked, and what follows from it. */
export class Answers {
  readonly #options: AnswersOptions;

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  /** Answers: all of them, or none. Dry: only says what would stand against each. */
  async answer(by: string, answers: readonly Answer[], how: How = {}): Promise<AnswerOutcome[]> {
    const { isDry = false, isFirst = false, detail = '' } = how;
    const { tasks, people, delegations } = this.#options;
    const [everyone, words] = await Promise.all([people.all(), delegations.following()]);
    const refused = await Promise.all(answers.map((one) => this.#refuse(by, one, everyone)));
    const followers = await Promise.all(answers.map((one) => this.#followers(by, one, { everyone, words })));
    const isBad = refused.some((error) => error !== undefined);
    const args = {
      ...tasks.store.common(),
      by,
      answers: answers.map(({ approval, action, reason, hash = '' }, at) => {
        return { approval, action, reason, hash, detail, followers: followers[at]! };
      }),
      dry: Number(isDry || isBad),
      first: Number(isFirst),
    };
    const replies = await this.#respond(args);
    return answers.map(({ approval }, at) => {
      const error = refused[at] ?? objection(replies[at]!, approval, by);
      if (error) return { approval, error };
      const [word, state = 'REVIEWING'] = replies[at]!;
      return { approval, state: state as TaskState, again: word === 'SAME' };
    });
  }

  /**
   * A question that is due goes to the next level and is not answered any more. Where nobody has seen to that yet it is done
   * here; and if it turns out that nobody is left to be asked, it can be answered after all.
   */
  async #respond(args: RespondArgs): Promise<readonly (readonly string[])[]> {
    const { tasks, escalation } = this.#options;
    const run = () => tasks.store.scripts.run(respond, {}, args);
    const replies = await run();
    const late = args.answers.filter((_, at) => replies[at]?.[0] === 'EXPIRED' && replies[at][2] === '');
    if (late.length === 0 || args.dry === 1) return replies;
    for (const { approval } of late) await escalation.escalate(approval);
    return run();
  }

  async withdraw(approval: string, by: string, reason: string): Promise<TaskState> {
    const { tasks, terms } = this.#options;
    const term = termArgs(await terms());
    const reply = await tasks.store.scripts.run(
      withdraw,
      {},
      { ...tasks.store.common(), ...term, approval, by, reason },
    );
    const error = objection(reply, approval, by);
    if (error) throw error;
    return reply[0] as TaskState;
  }

  /** Passes a question on by hand. Answers with the request that the other one has since. */
  async delegate(approval: string, by: string, { to, reason }: { to: string; reason: string }): Promise<string> {
    const { tasks, people, terms } = this.#options;
    const denied = (why: string) => new ReeveError('APPROVAL_DENIED', { caller: by, approval, why });
    const [request, everyone] = [await this.#options.desk.get(approval), await people.all()];
    const why = request.status === 'PENDING' ? await this.#whyNot(by, request, everyone) : undefined;
    if (why) throw denied(why);
    const person = everyone.find((one) => goesBy(one, to));
    if (!person || !canReview(person)) throw denied(`${to} cannot answer in anybody's place`);
    const { delegation_chain: chain } = request;
    if (chain.some((one) => goesBy(person, one))) throw denied(`${to} had it already`);
    if (chain.length > MOST_HOPS) throw denied(`it was passed on ${MOST_HOPS} times already`);
    const { connection, keys } = tasks.store;
    const before = (await connection.commands.hget(keys.taskApprovalStats(request.task_id), 'needs')) ?? '[]';
    const open = withoutFollowers(
      needsSchema.parse(JSON.parse(before)),
      await this.#options.desk.about(request.task_id),
    );
    const needs = inPlaceOf(open, request.reviewer_id, person.id);
    const short = needs.find((need) => !canBeMet(need));
    if (short) throw denied(`then ${short.policy_id} could not find ${short.min} different people`);
    const reply = await tasks.store.scripts.run(
      delegate,
      {},
      {
        ...tasks.store.common(),
        approval,
        by,
        to: person.id,
        to_name: person.name,
        reason,
        before,
        needs: JSON.stringify(needs),
        ...termArgs(await terms()),
      },
    );
    const error = objection(reply, approval, by);
    if (error) throw error;
    return reply[1] ?? '';
  }

  /** Why this one cannot answer this question, by the roles and delegations of this moment. */
  async objectionTo(by: string, request: ApprovalRequest): Promise<string | undefined> {
    return this.#whyNot(by, request, await this.#options.people.all());
  }

  /** Whether the one who answers may still do so, by the roles and delegations of this moment. */
  async #refuse(by: string, { approval }: Answer, everyone: readonly Person[]): Promise<ReeveError | undefined> {
    const request = await this.#options.desk.find(approval);
    // Settled or unknown: the script says so, in its own words.
    if (request?.status !== 'PENDING') return undefined;
    const why = await this.#whyNot(by, request, everyone);
    return why ? new ReeveError('APPROVAL_DENIED', { caller: by, approval, why }) : undefined;
  }

  async #whyNot(by: string, request: ApprovalRequest, people: readonly Person[]): Promise<string | undefined> {
    const { delegations, clock } = this.#options;
    const { delegation_chain: chain, task_id } = request;
    const { needs } = await this.#options.desk.tally(task_id);
    const plain = { needs, people, chain, at: isoTime(clock), isByHand: request.by_hand !== undefined };
    if (chain.length < 2) return whyNot(by, { ...plain, delegations: [], petition: nothingAt(request.risk) });
    return whyNot(by, { ...plain, delegations: await delegations.all(), petition: await this.#petition(request) });
  }

  /** Those who go along with this answer, by what they say at this moment. Mostly nobody: then nothing more is read. */
  async #followers(by: string, { approval, action }: Answer, { everyone, words }: Room): Promise<readonly string[]> {
    const person = everyone.find((one) => goesBy(one, by));
    if (action !== 'approve' || !person || !words.some(({ delegate_to }) => goesBy(person, delegate_to))) return [];
    const request = await this.#options.desk.find(approval);
    if (request?.status !== 'PENDING') return [];
    const at = isoTime(this.#options.clock);
    const owners = followersOf(person, { delegations: words, petition: await this.#petition(request), at });
    return owners.map((owner) => everyone.find((one) => goesBy(one, owner))?.id ?? owner);
  }

  async #petition({ task_id, risk }: ApprovalRequest): Promise<Petition> {
    const { tasks } = this.#options;
    const local = task_id.slice(tasks.store.common().head.length);
    const task = (await tasks.views.tasks([local])).get(local);
    return task ? petitionOf(task, risk, []) : nothingAt(risk);
  }
}

const nothingAt = (risk: number): Petition => ({ type: '', resources: [], risk, authorRoles: [] });

interface Room {
  readonly everyone: readonly Person[];
  /** Of those who follow somebody. */
  readonly words: readonly Delegation[];
}

interface RespondArgs extends ReturnType<Tasks['store']['common']> {
  readonly by: string;
  readonly answers: readonly { readonly approval: string }[];
  readonly dry: number;
  readonly first: number;
}
