import { type Clock, isoTime } from '../clock.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { petitionOf } from './assessor.ts';
import { type Delegation, route } from './delegation.ts';
import type { DelegationStore } from './delegation-store.ts';
import type { ApprovalDesk } from './desk.ts';
import { whyNot } from './eligibility.ts';
import { colleaguesOf, type NextStep, nextStep, type Rung, rungsAbove } from './ladder.ts';
import { withoutFollowers } from './need.ts';
import { canReview, goesBy, type People, type Person } from './people.ts';
import type { Petition } from './policy.ts';
import { type ApprovalRequest, needsSchema } from './request.ts';
import { handOver, lapse } from './scripts.ts';
import { type Terms, termArgs } from './terms.ts';
import { makersOf, submittedAt } from './written-task.ts';

export interface EscalationOptions {
  readonly tasks: Tasks;
  readonly desk: ApprovalDesk;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly terms: () => Promise<Terms>;
  readonly clock: Clock;
}

export type Kind = 'escalate' | 'reassign';
/** What became of a question; none: somebody was faster, or it is not due. */
export type HandedOver = 'asked' | 'closed' | 'stays' | 'none';

/** What a decision about one question goes by. */
interface Case {
  readonly request: ApprovalRequest;
  readonly people: readonly Person[];
  readonly delegations: readonly Delegation[];
  readonly petition: Petition;
  readonly before: string;
  readonly terms: Terms;
}

const TRIES = 3;

/** Finds somebody else for a question that is not answered, or cannot be. */
export class Escalation {
  readonly #options: EscalationOptions;

  constructor(options: EscalationOptions) {
    this.#options = options;
  }

  /** To the next level, if it is due. Of an answer and this exactly one happens. */
  async escalate(approval: string): Promise<HandedOver> {
    return this.#handOver(approval, 'escalate', async (one) => {
      const { due_at, reviewer_id } = one.request;
      return { subject: reviewer_id, why: `${reviewer_id} had not answered by ${due_at}` };
    });
  }

  /** To a delegate or a manager, if whoever has it cannot answer any more, or lets somebody else answer. */
  async reassign(approval: string): Promise<HandedOver> {
    return this.#handOver(approval, 'reassign', (one) => this.#unfitness(one));
  }

  /**
   * Takes the votes of those who lost the right to them out of the count of a task, by its id under `ade:`. Answers with their
   * questions, which are open again.
   */
  async recount(task: string): Promise<readonly string[]> {
    const { tasks, terms } = this.#options;
    const args = { ...tasks.store.common(), ...termArgs(await terms()), by: 'system', task };
    return tasks.store.scripts.run(lapse, {}, args);
  }

  /** What will happen when it is due, in words. */
  async outlook(request: ApprovalRequest): Promise<string> {
    const one = await this.#read(request);
    const step = await this.#step(one, 'escalate', request.reviewer_id);
    const told = one.terms.onCall ? `${one.terms.onCall} is told` : 'nobody else is told, for nobody is on call';
    switch (step.outcome) {
      case 'ask':
        return `${step.rung.person.id} (${step.rung.as}) is asked instead${step.rung.as === 'on call' ? '' : `, and ${told}`}`;
      case 'close':
        return `it ends, for enough others are asked`;
      case 'stay':
        return `it stays open, for nobody is left to be asked, and ${told}`;
    }
  }

  async #handOver(approval: string, kind: Kind, judge: Judge, tries = TRIES): Promise<HandedOver> {
    const request = await this.#options.desk.find(approval);
    if (request?.status !== 'PENDING') return 'none';
    const one = await this.#read(request);
    const unfit = await judge(one);
    if (!unfit) return 'none';
    const step = await this.#step(one, kind, unfit.subject);
    const [word] = await this.#run(one, kind, step, unfit.why);
    if (word === 'CHANGED' && tries > 1) return this.#handOver(approval, kind, judge, tries - 1);
    return OUTCOMES[word ?? ''] ?? 'none';
  }

  async #step({ request, people, delegations, petition, before, terms }: Case, kind: Kind, subject: string) {
    const { tasks, desk, clock } = this.#options;
    const [makers, since, asked] = await Promise.all([
      makersOf(tasks, request.task_id),
      submittedAt(tasks, request.task_id),
      desk.about(request.task_id),
    ]);
    const climb = { people, delegations, petition, makers, onCall: terms.onCall, at: isoTime(clock) };
    const others = asked
      .filter((one) => one.approval_id !== request.approval_id && one.created_at >= since)
      .filter(({ status }) => ASKED.includes(status))
      .map(({ reviewer_id, status, tier }) => ({ reviewer: reviewer_id, isOpen: status === 'PENDING', tier }));
    const needs = withoutFollowers(needsSchema.parse(JSON.parse(before)), asked);
    const isOther = ({ person }: Rung) => !goesBy(person, request.reviewer_id);
    const rungs = rungsAbove(subject, climb).filter(isOther);
    const colleagues = colleaguesOf(request.reviewer_id, needs, climb).filter(isOther);
    return nextStep({ kind, reviewer: request.reviewer_id, rungs, colleagues, needs, others });
  }

  async #run({ request, before, terms }: Case, kind: Kind, step: NextStep, why: string): Promise<readonly string[]> {
    const { store } = this.#options.tasks;
    const rung = step.outcome === 'ask' ? step.rung : undefined;
    return store.scripts.run(
      handOver,
      {},
      {
        ...store.common(),
        ...termArgs(terms, request.span_us > 0 ? request.span_us / 1_000_000 : undefined),
        by: 'system',
        approval: request.approval_id,
        kind,
        wake: request.wake_us,
        before,
        needs: JSON.stringify(step.needs),
        outcome: step.outcome,
        to: rung?.person.id ?? '',
        to_name: rung?.person.name ?? '',
        because: rung ? `${why}; ${rung.person.id} is asked (${rung.as})` : `${why}; ${REMAINDER[step.outcome]}`,
        on_call: terms.onCall,
      },
    );
  }

  /** Why somebody must be found for it, and in whose place. */
  async #unfitness({ request, people, delegations, petition, before }: Case): Promise<Unfit | undefined> {
    const { reviewer_id: reviewer, delegation_chain: chain, by_hand } = request;
    const at = isoTime(this.#options.clock);
    const needs = needsSchema.parse(JSON.parse(before));
    const why = whyNot(reviewer, { people, delegations, petition, needs, chain, at, isByHand: by_hand !== undefined });
    const person = people.find((one) => goesBy(one, reviewer));
    const isHere = person !== undefined && canReview(person);
    if (why) return { subject: isHere ? (chain[0] ?? reviewer) : reviewer, why: isHere ? why : `${reviewer} left` };
    const isBarred = (id: string) => !people.some((one) => goesBy(one, id) && canReview(one));
    const { to } = route(reviewer, { delegations, petition, at, isBarred });
    return goesBy(person!, to) ? undefined : { subject: reviewer, why: `${reviewer} lets ${to} answer` };
  }

  async #read(request: ApprovalRequest): Promise<Case> {
    const { tasks, people, delegations, terms } = this.#options;
    const { connection, keys, head } = tasks.store;
    const { task_id, risk } = request;
    const local = task_id.slice(head.length);
    const [found, before, everyone, chains, now] = await Promise.all([
      tasks.views.tasks([local]),
      connection.commands.hget(keys.taskApprovalStats(task_id), 'needs'),
      people.all(),
      delegations.all(),
      terms(),
    ]);
    const task = found.get(local);
    const petition = task ? petitionOf(task, risk, []) : NOTHING;
    return { request, people: everyone, delegations: chains, petition, before: before ?? '[]', terms: now };
  }
}

interface Unfit {
  readonly subject: string;
  readonly why: string;
}
type Judge = (one: Case) => Promise<Unfit | undefined>;

/** Whoever passed it on, or let somebody else answer, may be asked again. */
const ASKED: readonly string[] = ['PENDING', 'APPROVED', 'REJECTED', 'EXPIRED'];
const NOTHING: Petition = { type: '', resources: [], risk: 0, authorRoles: [] };
const REMAINDER = { ask: '', close: 'enough others are asked', stay: 'nobody is left to be asked' } as const;
const OUTCOMES: Readonly<Record<string, HandedOver>> = { ASKED: 'asked', CLOSED: 'closed', STAYS: 'stays' };
