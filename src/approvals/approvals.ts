import { type Clock, isoTime } from '../clock.ts';
import type { DependencyGraph } from '../coordinator/tasks/dependencies.ts';
import type { Gate, Passage } from '../coordinator/tasks/gate.ts';
import type { Task, TaskState } from '../coordinator/tasks/task.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError, reason as reasonOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Assessor, petitionOf, riskFields } from './assessor.ts';
import { assign, canBeMet, inPlaceOf } from './assignment.ts';
import { breakGlass, type Forced, type Override } from './break-glass.ts';
import { MOST_HOPS } from './delegation.ts';
import type { DelegationStore } from './delegation-store.ts';
import { ApprovalDesk } from './desk.ts';
import { whyNot } from './eligibility.ts';
import { objection } from './objection.ts';
import { canReview, goesBy, type People, type Person } from './people.ts';
import type { PolicyInForce } from './policy.ts';
import type { PolicyStore } from './policy-store.ts';
import { type Preview, previewSchema } from './preview.ts';
import { compare, type PastTask, pastTasks, type Replay } from './replay.ts';
import { type AnswerAction, type ApprovalRequest, needsSchema } from './request.ts';
import type { Risk, RiskThresholds } from './risk.ts';
import { type Ruling, rulingOf, STATE_AFTER } from './ruling.ts';
import { comment, delegate, respond, submit, withdraw } from './scripts.ts';

export interface ApprovalsOptions {
  readonly tasks: Tasks;
  readonly assessor: Assessor;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly thresholds: () => Promise<RiskThresholds>;
  /** Seconds that people have to answer. */
  readonly timeout: () => Promise<number>;
  readonly allowsUnasked: () => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Answer {
  readonly approval: string;
  readonly action: AnswerAction;
  readonly reason: string;
  /** Config hash of what was looked at; none: whatever it is now. */
  readonly hash?: string | undefined;
}

/** How one answer fared: the state of its task since, or what stood against it. */
export type AnswerOutcome =
  | { readonly approval: string; readonly state: TaskState; readonly again: boolean }
  | { readonly approval: string; readonly error: ReeveError };

/** How many at a time are asked for anew. */
const LEFT = 100;

/** Whoever wrote a task that came in by a file. */
const FILES = ['prd', 'api'];

/** The human gate: what may pass unasked, who is asked about the rest, and what follows from the answers. */
export class Approvals implements Gate {
  readonly desk: ApprovalDesk;
  readonly #options: ApprovalsOptions;

  constructor(options: ApprovalsOptions) {
    this.#options = options;
    const { connection, keys } = options.tasks.store;
    this.desk = new ApprovalDesk({ connection, keys });
  }

  /** For many at once, before they are admitted. Nobody is looked for yet: most pass. */
  async judge(tasks: readonly Task[], graph: DependencyGraph): Promise<ReadonlyMap<string, Passage>> {
    if (tasks.length === 0) return new Map();
    const { assessor, policies, clock } = this.#options;
    const [risks, inForce, common] = [
      await assessor.assessAll(tasks, graph),
      await policies.inForce(),
      await this.#common(true),
    ];
    return new Map(
      tasks.map((task) => {
        const risk = risks.get(task.task_id)!;
        const nobody = { people: [], delegations: [], makers: [], at: isoTime(clock) };
        const petition = petitionOf(task, risk, []);
        const passes = assign({ ...common, ...nobody, petition, policies: inForce }).outcome === 'unasked';
        return [task.task_id, { passes, risk: riskFields(risk, passes) }];
      }),
    );
  }

  /** Somebody wrote it at a door; what comes by a file is ruled upon as the file's. */
  async isWritten(task: string): Promise<boolean> {
    const author = await this.authorOf(task);
    return author !== undefined && !FILES.includes(author);
  }

  async authorOf(task: string): Promise<string | undefined> {
    const { connection, keys, adeId } = this.#store();
    return (await connection.commands.hget(keys.taskMetadata(adeId(task)), 'author_id')) ?? undefined;
  }

  async ask(ids: readonly string[], { drafts }: { readonly drafts: boolean }): Promise<void> {
    if (ids.length === 0) return;
    const { tasks, log } = this.#options;
    const { connection, keys } = tasks.store;
    const states = await connection.commands.mget(ids.map((id) => keys.taskState(tasks.store.adeId(id))));
    for (const [at, id] of ids.entries()) {
      if (states[at] !== 'SUBMITTED' && !(drafts && states[at] === 'DRAFT')) continue;
      const ruling = this.#submit(id, { by: 'system', isPatient: true });
      await ruling.catch((error: unknown) =>
        log.warn('a task could not be submitted', { task: id, problem: reasonOf(error) }),
      );
    }
  }

  /**
   * Asks for what was left standing before the gate: its approval did not hold when it was claimed, nobody could be asked
   * then, or a daemon died between taking it in and asking. Answers with how many there were.
   */
  async askLeftOnce(): Promise<number> {
    const { tasks } = this.#options;
    const { connection, keys } = tasks.store;
    const [redis, { head }] = [connection.commands, tasks.store.common()];
    const oldest = async (state: TaskState) =>
      (await redis.zrange(keys.tasksByState(state), '0', String(LEFT - 1))).filter((id) => id.startsWith(head));
    const submitted = await oldest('SUBMITTED');
    const drafts: string[] = [];
    for (const id of await oldest('DRAFT')) {
      const [author, at] = await redis.hmget(keys.taskMetadata(id), 'author_id', 'submitted_at');
      if (FILES.includes(author ?? '') && !at) drafts.push(id);
    }
    const local = (ids: readonly string[]) => ids.map((id) => id.slice(head.length));
    await this.ask(local(submitted), { drafts: false });
    await this.ask(local(drafts), { drafts: true });
    return submitted.length + drafts.length;
  }

  /** From draft to wherever it belongs: through the gate, or before people. */
  submit(task: string, by: string): Promise<Ruling> {
    return this.#submit(task, { by, isPatient: false });
  }

  /** What submitting it would do. Nothing is written. */
  async simulate(task: Task, author: string, policies?: readonly PolicyInForce[]): Promise<Ruling> {
    const { assessment, assignment } = await this.#rule(task, { version: 0, makers: [author], author, policies });
    return rulingOf(task, assessment, assignment, { state: STATE_AFTER[assignment.outcome], ids: [] });
  }

  /** Rules upon the newest tasks as they were ruled upon and as they would have been with these policies. */
  async replay(policies: readonly PolicyInForce[], limit: number): Promise<Replay> {
    const { people, delegations, clock } = this.#options;
    const [inForce, everyone, chains, past] = await Promise.all([
      this.#options.policies.inForce(),
      people.all(),
      delegations.all(),
      pastTasks(this.#options.tasks, this.desk, limit),
    ]);
    const shared = { people: everyone, delegations: chains, at: isoTime(clock) };
    const common = { file: await this.#common(true), api: await this.#common(false) };
    const rule = ({ task, risk, author }: PastTask, by: readonly PolicyInForce[]) => {
      const writer = everyone.find(({ id }) => id === author);
      const isOfFile = FILES.includes(author) && !writer;
      const petition = petitionOf(task, risk, writer?.roles ?? []);
      return assign({ ...shared, ...common[isOfFile ? 'file' : 'api'], petition, policies: by, makers: [author] });
    };
    return compare(
      past,
      (one) => rule(one, inForce),
      (one) => rule(one, policies),
    );
  }

  async preview(id: string): Promise<Preview> {
    const { connection, keys, adeId } = this.#store();
    const kept = await connection.commands.get(keys.taskPreview(adeId(id)));
    if (kept) return previewSchema.parse(JSON.parse(kept));
    const { task, version, author } = await this.#read(id);
    const isOfFile = FILES.includes(author);
    return (await this.#options.assessor.assess(task, { version, isOfFile })).preview;
  }

  /** Answers: all of them, or none. Dry: only says what would stand against each. */
  async answer(by: string, answers: readonly Answer[], { isDry = false } = {}): Promise<AnswerOutcome[]> {
    const { tasks, people } = this.#options;
    const everyone = await people.all();
    const refused = await Promise.all(answers.map((one) => this.#refuse(by, one, everyone)));
    const isBad = refused.some((error) => error !== undefined);
    const args = {
      ...tasks.store.common(),
      by,
      answers: answers.map(({ approval, action, reason, hash = '' }) => ({ approval, action, reason, hash })),
      dry: Number(isDry || isBad),
    };
    const replies = await tasks.store.scripts.run(respond, {}, args);
    return answers.map(({ approval }, at) => {
      const error = refused[at] ?? objection(replies[at] as string[], approval, by);
      if (error) return { approval, error };
      const [word, state = 'REVIEWING'] = replies[at] as string[];
      return { approval, state: state as TaskState, again: word === 'SAME' };
    });
  }

  /** Several at once. What is critical wants a look of its own. */
  async answerAll(by: string, answers: readonly Answer[], { isDry = false } = {}): Promise<AnswerOutcome[]> {
    const { critical } = await this.#options.thresholds();
    const found = await Promise.all(answers.map(({ approval }) => this.desk.find(approval)));
    const isCritical = (at: number) => (found[at]?.risk ?? 0) >= critical;
    const hasCritical = answers.some((_, at) => isCritical(at));
    const outcomes = await this.answer(by, answers, { isDry: isDry || hasCritical });
    return outcomes.map((one, at) => {
      if ('error' in one || !isCritical(at)) return one;
      const why = 'its risk is critical, and what is critical is answered by itself';
      return {
        approval: one.approval,
        error: new ReeveError('APPROVAL_DENIED', { caller: by, approval: one.approval, why }),
      };
    });
  }

  async withdraw(approval: string, by: string, reason: string): Promise<TaskState> {
    const { tasks, timeout } = this.#options;
    const due_us = (await timeout()) * 1_000_000;
    const reply = await tasks.store.scripts.run(
      withdraw,
      {},
      { ...tasks.store.common(), approval, by, reason, due_us },
    );
    const error = objection(reply, approval, by);
    if (error) throw error;
    return reply[0] as TaskState;
  }

  /** Passes a question on by hand. Answers with the request that the other one has since. */
  async delegate(approval: string, by: string, { to, reason }: { to: string; reason: string }): Promise<string> {
    const { tasks, people, timeout } = this.#options;
    const denied = (why: string) => new ReeveError('APPROVAL_DENIED', { caller: by, approval, why });
    const [request, everyone] = [await this.desk.get(approval), await people.all()];
    const why = request.status === 'PENDING' ? await this.#whyNot(by, request, everyone) : undefined;
    if (why) throw denied(why);
    const person = everyone.find((one) => goesBy(one, to));
    if (!person || !canReview(person)) throw denied(`${to} cannot answer in anybody's place`);
    const { delegation_chain: chain } = request;
    if (chain.some((one) => goesBy(person, one))) throw denied(`${to} had it already`);
    if (chain.length > MOST_HOPS) throw denied(`it was passed on ${MOST_HOPS} times already`);
    const { connection, keys } = this.#store();
    const before = (await connection.commands.hget(keys.taskApprovalStats(request.task_id), 'needs')) ?? '[]';
    const needs = inPlaceOf(needsSchema.parse(JSON.parse(before)), request.reviewer_id, person.id);
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
        due_us: (await timeout()) * 1_000_000,
      },
    );
    const error = objection(reply, approval, by);
    if (error) throw error;
    return reply[1] ?? '';
  }

  /** Lets a task pass in spite of the gate, once two different admins have said so. */
  async force(id: string, by: string, why: Override): Promise<Forced> {
    const { task, version } = await this.#read(id);
    return breakGlass(this.#options.tasks.store, { task, version, by, ...why });
  }

  async comment(task: string, by: string, text: string): Promise<string> {
    const { tasks } = this.#options;
    const [word, at = ''] = await tasks.store.scripts.run(comment, {}, { ...tasks.store.common(), task, by, text });
    if (word === 'UNKNOWN') throw new ReeveError('TASK_UNKNOWN', { task });
    return at;
  }

  async #submit(id: string, { by, isPatient }: { by: string; isPatient: boolean }, tries = 3): Promise<Ruling> {
    const { tasks, timeout } = this.#options;
    const found = await this.#read(id);
    const { task, state, version } = found;
    if (state !== 'DRAFT' && state !== 'SUBMITTED') {
      throw new ReeveError('TASK_STATE', { task: id, state, what: 'submitting', wanted: 'drafts' });
    }
    const { assessment, assignment } = await this.#rule(task, found);
    const { preview, risk } = assessment;
    const problem = preview.errors.join('; ');
    if (problem && !isPatient) throw new ReeveError('PREVIEW_FAILED', { task: id, problem });
    if (assignment.outcome === 'nobody' && !isPatient) {
      throw new ReeveError('NOBODY_TO_ASK', { task: id, why: assignment.because });
    }
    const asked = assignment.outcome === 'ask' ? assignment.asked : [];
    const reply = await tasks.store.scripts.run(
      submit,
      {},
      {
        ...tasks.store.common(),
        task: id,
        by,
        version: String(version),
        hash: preview.config_hash,
        preview: JSON.stringify(preview),
        risk: riskFields(risk, assignment.outcome === 'unasked'),
        outcome: problem ? 'refuse' : OUTCOME[assignment.outcome],
        because: problem || assignment.because,
        needs: JSON.stringify(assignment.outcome === 'ask' ? assignment.needs : []),
        questions: asked.map(({ to, name, chain }) => ({ to, name, chain: JSON.stringify(chain) })),
        priority: task.urgency ?? 'NORMAL',
        risk_score: risk.score,
        policies: JSON.stringify(assignment.policies),
        due_us: (await timeout()) * 1_000_000,
      },
    );
    const [word, ...ids] = reply;
    if (word === 'CHANGED' && tries > 1) return this.#submit(id, { by, isPatient }, tries - 1);
    if (word === 'CHANGED') throw new ReeveError('TASK_CHANGED', { task: id });
    if (word === 'UNKNOWN') throw new ReeveError('TASK_UNKNOWN', { task: id });
    if (word === 'STATE') {
      throw new ReeveError('TASK_STATE', { task: id, state: ids[0] ?? '', what: 'submitting', wanted: 'drafts' });
    }
    return rulingOf(task, assessment, assignment, { state: word as TaskState, ids });
  }

  async #rule(task: Task, { version, makers, author, policies }: Ruled) {
    const { assessor, people, delegations, clock } = this.#options;
    const [everyone, chains, inForce] = await Promise.all([
      people.all(),
      delegations.all(),
      policies ?? this.#options.policies.inForce(),
    ]);
    const writer = everyone.find(({ id }) => id === author);
    const isOfFile = FILES.includes(author) && !writer;
    const assessment = await assessor.assess(task, { version, isOfFile });
    const assignment = assign({
      ...(await this.#common(isOfFile)),
      petition: petitionOf(task, assessment.risk, writer?.roles ?? []),
      policies: inForce,
      people: everyone,
      delegations: chains,
      makers,
      at: isoTime(clock),
    });
    return { assessment, assignment };
  }

  async #common(isOfFile: boolean) {
    const { thresholds, allowsUnasked } = this.#options;
    const unaskedBelow = isOfFile ? (await thresholds()).auto_approve : undefined;
    return { unaskedBelow, allowsUnasked: await allowsUnasked() };
  }

  /** A task as it stands, and who made it so. */
  async #read(id: string) {
    const { connection, keys, adeId } = this.#store();
    const [redis, ade] = [connection.commands, adeId(id)];
    const [found, state, version, made] = await Promise.all([
      this.#options.tasks.views.tasks([id]),
      redis.get(keys.taskState(ade)),
      redis.hget(keys.taskConfig(ade), 'version'),
      redis.hmget(keys.taskMetadata(ade), 'author_id', 'editor_id'),
    ]);
    const task = found.get(id);
    if (!task || !state) throw new ReeveError('TASK_UNKNOWN', { task: id });
    const makers = made.filter((one) => one !== null);
    return { task, state: state as TaskState, version: Number(version ?? 1), makers, author: made[0] ?? '' };
  }

  /** Whether the one who answers may still do so, by the roles and delegations of this moment. */
  async #refuse(by: string, { approval }: Answer, everyone: readonly Person[]): Promise<ReeveError | undefined> {
    const request = await this.desk.find(approval);
    // Settled or unknown: the script says so, in its own words.
    if (request?.status !== 'PENDING') return undefined;
    const why = await this.#whyNot(by, request, everyone);
    return why ? new ReeveError('APPROVAL_DENIED', { caller: by, approval, why }) : undefined;
  }

  async #whyNot(by: string, request: ApprovalRequest, people: readonly Person[]): Promise<string | undefined> {
    const { delegations, tasks, clock } = this.#options;
    const { delegation_chain: chain, risk, task_id } = request;
    const { needs } = await this.desk.tally(task_id);
    const plain = { needs, people, chain, at: isoTime(clock), isByHand: request.by_hand !== undefined };
    const nothing = { type: '', resources: [], risk, authorRoles: [] };
    if (chain.length < 2) return whyNot(by, { ...plain, delegations: [], petition: nothing });
    const local = task_id.slice(tasks.store.common().head.length);
    const task = (await tasks.views.tasks([local])).get(local);
    const petition = task ? { ...petitionOf(task, NO_RISK, []), risk } : nothing;
    return whyNot(by, { ...plain, delegations: await delegations.all(), petition });
  }

  #store() {
    const { store } = this.#options.tasks;
    return { connection: store.connection, keys: store.keys, adeId: (id: string) => store.adeId(id) };
  }
}

const NO_RISK: Risk = { score: 0, exact: 0, level: 'LOW', factors: [], assessed_by: '' };

interface Ruled {
  readonly version: number;
  readonly makers: readonly string[];
  readonly author: string;
  readonly policies?: readonly PolicyInForce[] | undefined;
}

const OUTCOME = { unasked: 'pass', ask: 'ask', nobody: 'wait' } as const;
