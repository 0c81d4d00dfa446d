import type { Clock } from '../clock.ts';
import type { Gate, Passage } from '../coordinator/tasks/gate.ts';
import type { Task, TaskState } from '../coordinator/tasks/task.ts';
import type { WaitingFor } from '../coordinator/tasks/task-judge.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Answer, type AnswerOutcome, Answers } from './answers.ts';
import type { Assessor } from './assessor.ts';
import { Batch, type BatchWishes } from './batch.ts';
import { breakGlass, type Forced, type Override, type Waived, waivePolicy } from './break-glass.ts';
import type { DelegationStore } from './delegation-store.ts';
import { ApprovalDesk } from './desk.ts';
import { Escalation } from './escalation.ts';
import type { People } from './people.ts';
import type { PolicyInForce } from './policy.ts';
import type { PolicyStore } from './policy-store.ts';
import type { Preview } from './preview.ts';
import type { Replay } from './replay.ts';
import type { ApprovalRequest } from './request.ts';
import type { RiskThresholds } from './risk.ts';
import { Rules } from './rules.ts';
import type { Ruling } from './ruling.ts';
import { comment } from './scripts.ts';
import { Submission, type Wishes } from './submission.ts';
import type { Terms } from './terms.ts';
import { Timekeeper } from './timekeeper.ts';
import { authorOf, isFile, readTask } from './written-task.ts';

export interface ApprovalsOptions {
  readonly tasks: Tasks;
  readonly assessor: Assessor;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly thresholds: () => Promise<RiskThresholds>;
  readonly terms: () => Promise<Terms>;
  readonly allowsUnasked: () => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The human gate: what may pass unasked, who is asked about the rest, and what follows from the answers. */
export class Approvals implements Gate {
  readonly desk: ApprovalDesk;
  readonly escalation: Escalation;
  readonly timekeeper: Timekeeper;
  readonly #options: ApprovalsOptions;
  readonly #rules: Rules;
  readonly #submission: Submission;
  readonly #answers: Answers;
  readonly #batch: Batch;

  constructor(options: ApprovalsOptions) {
    this.#options = options;
    const { connection, keys, scripts } = options.tasks.store;
    this.desk = new ApprovalDesk({ connection, keys, scripts });
    this.#rules = new Rules({ ...options, desk: this.desk });
    this.#submission = new Submission({ ...options, rules: this.#rules });
    this.escalation = new Escalation({ ...options, desk: this.desk });
    this.timekeeper = new Timekeeper({ ...options, desk: this.desk, escalation: this.escalation });
    this.#answers = new Answers({ ...options, desk: this.desk, escalation: this.escalation });
    this.#batch = new Batch({ ...options, desk: this.desk, answers: this.#answers });
  }

  judge(tasks: readonly Task[], waitingFor: WaitingFor): Promise<ReadonlyMap<string, Passage>> {
    return this.#rules.judge(tasks, waitingFor);
  }

  /** Somebody wrote it at a door; what comes by a file is ruled upon as the file's. */
  async isWritten(task: string): Promise<boolean> {
    const author = await this.authorOf(task);
    return author !== undefined && !isFile(author);
  }

  authorOf(task: string): Promise<string | undefined> {
    return authorOf(this.#options.tasks, task);
  }

  ask(ids: readonly string[], what: { readonly drafts: boolean }): Promise<void> {
    return this.#submission.ask(ids, what);
  }

  askLeftOnce(): Promise<number> {
    return this.#submission.askLeftOnce();
  }

  submit(task: string, by: string, wishes?: Wishes): Promise<Ruling> {
    return this.#submission.submit(task, by, wishes);
  }

  simulate(task: Task, author: string, policies?: readonly PolicyInForce[]): Promise<Ruling> {
    return this.#rules.simulate(task, author, policies);
  }

  replay(policies: readonly PolicyInForce[], limit: number): Promise<Replay> {
    return this.#rules.replay(policies, limit);
  }

  /** As things are now: who holds which lock changes while people look at what was submitted. */
  async preview(id: string): Promise<Preview> {
    const { tasks, assessor } = this.#options;
    const { task, version, author } = await readTask(tasks, id);
    return (await assessor.assess(task, { version, isOfFile: isFile(author) })).preview;
  }

  answer(by: string, answers: readonly Answer[], how?: { readonly isDry?: boolean }): Promise<AnswerOutcome[]> {
    return this.#answers.answer(by, answers, how);
  }

  /** Why this one cannot answer this question. */
  async objectionTo(by: string, request: ApprovalRequest): Promise<string | undefined> {
    if (request.reviewer_id !== by) return `${request.reviewer_id} is asked, not ${by}`;
    return this.#answers.objectionTo(by, request);
  }

  answerAll(by: string, answers: readonly Answer[], wishes?: BatchWishes): Promise<AnswerOutcome[]> {
    return this.#batch.answer(by, answers, wishes);
  }

  withdraw(approval: string, by: string, reason: string): Promise<TaskState> {
    return this.#answers.withdraw(approval, by, reason);
  }

  delegate(approval: string, by: string, to: { readonly to: string; readonly reason: string }): Promise<string> {
    return this.#answers.delegate(approval, by, to);
  }

  /** Lets a task pass in spite of the gate, once two different admins have said so. */
  async force(id: string, by: string, why: Override): Promise<Forced> {
    const { tasks } = this.#options;
    const { task, version } = await readTask(tasks, id);
    return breakGlass(tasks.store, { task, version, by, ...why });
  }

  /** Does without what one policy asks for, once two different admins have said so. */
  async waive(id: string, policy: string, by: string, why: Override): Promise<Waived> {
    const { tasks } = this.#options;
    const { task, version } = await readTask(tasks, id);
    return waivePolicy(tasks.store, { task, version, by, ...why }, policy);
  }

  async comment(task: string, by: string, text: string): Promise<string> {
    const { tasks } = this.#options;
    const [word, at = ''] = await tasks.store.scripts.run(comment, {}, { ...tasks.store.common(), task, by, text });
    if (word === 'UNKNOWN') throw new ReeveError('TASK_UNKNOWN', { task });
    return at;
  }
}
