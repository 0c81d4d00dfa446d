import { type Clock, isoTime } from '../clock.ts';
import type { Passage } from '../coordinator/tasks/gate.ts';
import type { Task } from '../coordinator/tasks/task.ts';
import type { WaitingFor } from '../coordinator/tasks/task-judge.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { type Assessment, type Assessor, petitionOf, riskFields } from './assessor.ts';
import { type Assignment, assign } from './assignment.ts';
import type { DelegationStore } from './delegation-store.ts';
import type { ApprovalDesk } from './desk.ts';
import type { People } from './people.ts';
import type { PolicyInForce } from './policy.ts';
import type { PolicyStore } from './policy-store.ts';
import { compare, type PastTask, pastTasks, type Replay } from './replay.ts';
import type { RiskThresholds } from './risk.ts';
import { type Ruling, rulingOf, STATE_AFTER } from './ruling.ts';
import { isFile } from './written-task.ts';

export interface RulesOptions {
  readonly tasks: Tasks;
  readonly desk: ApprovalDesk;
  readonly assessor: Assessor;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly thresholds: () => Promise<RiskThresholds>;
  readonly allowsUnasked: () => Promise<boolean>;
  readonly clock: Clock;
}

/** What is ruled upon: content as it was read, and who made it. */
export interface Ruled {
  readonly version: number;
  readonly makers: readonly string[];
  readonly author: string;
  readonly policies?: readonly PolicyInForce[] | undefined;
}

/** What risk, policies, people and delegations make of a task. Nothing is written here. */
export class Rules {
  readonly #options: RulesOptions;

  constructor(options: RulesOptions) {
    this.#options = options;
  }

  /** For many at once, before they are admitted. Nobody is looked for yet: most pass. */
  async judge(tasks: readonly Task[], waitingFor: WaitingFor): Promise<ReadonlyMap<string, Passage>> {
    if (tasks.length === 0) return new Map();
    const { assessor, policies, clock } = this.#options;
    const [risks, inForce, common] = [
      await assessor.assessAll(tasks, waitingFor),
      await policies.inForce(),
      await this.#common(true),
    ];
    return new Map(
      tasks.map((task) => {
        const risk = risks.get(task.task_id)!;
        const nobody = { people: [], delegations: [], makers: [], at: isoTime(clock) };
        const petition = petitionOf(task, risk.exact, []);
        const passes = assign({ ...common, ...nobody, petition, policies: inForce }).outcome === 'unasked';
        return [task.task_id, { passes, risk: riskFields(risk, passes) }];
      }),
    );
  }

  async rule(task: Task, { version, makers, author, policies }: Ruled): Promise<Verdict> {
    const { assessor, people, delegations, clock } = this.#options;
    const [everyone, chains, inForce] = await Promise.all([
      people.all(),
      delegations.all(),
      policies ?? this.#options.policies.inForce(),
    ]);
    const writer = everyone.find(({ id }) => id === author);
    const isOfFile = isFile(author) && !writer;
    const assessment = await assessor.assess(task, { version, isOfFile });
    const assignment = assign({
      ...(await this.#common(isOfFile)),
      petition: petitionOf(task, assessment.risk.exact, writer?.roles ?? []),
      policies: inForce,
      people: everyone,
      delegations: chains,
      makers,
      at: isoTime(clock),
    });
    return { assessment, assignment };
  }

  /** What submitting it would do. */
  async simulate(task: Task, author: string, policies?: readonly PolicyInForce[]): Promise<Ruling> {
    const { assessment, assignment } = await this.rule(task, { version: 0, makers: [author], author, policies });
    return rulingOf(task, assessment, assignment, { state: STATE_AFTER[assignment.outcome], ids: [] });
  }

  /** Rules upon the newest tasks as they were ruled upon and as they would have been with these policies. */
  async replay(policies: readonly PolicyInForce[], limit: number): Promise<Replay> {
    const { people, delegations, clock } = this.#options;
    const [inForce, everyone, chains, past] = await Promise.all([
      this.#options.policies.inForce(),
      people.all(),
      delegations.all(),
      pastTasks(this.#options.tasks, this.#options.desk, limit),
    ]);
    const shared = { people: everyone, delegations: chains, at: isoTime(clock) };
    const common = { file: await this.#common(true), api: await this.#common(false) };
    const rule = ({ task, risk, author }: PastTask, by: readonly PolicyInForce[]) => {
      const writer = everyone.find(({ id }) => id === author);
      const isOfFile = isFile(author) && !writer;
      const petition = petitionOf(task, risk.exact, writer?.roles ?? []);
      return assign({ ...shared, ...common[isOfFile ? 'file' : 'api'], petition, policies: by, makers: [author] });
    };
    return compare(
      past,
      (one) => rule(one, inForce),
      (one) => rule(one, policies),
    );
  }

  async #common(isOfFile: boolean) {
    const { thresholds, allowsUnasked } = this.#options;
    const unaskedBelow = isOfFile ? (await thresholds()).auto_approve : undefined;
    return { unaskedBelow, allowsUnasked: await allowsUnasked() };
  }
}

export interface Verdict {
  readonly assessment: Assessment;
  readonly assignment: Assignment;
}
