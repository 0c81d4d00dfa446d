import { type Clock, isoTime } from '../clock.ts';
import { resourceLock } from '../coordinator/locks/lock.ts';
import type { Locks } from '../coordinator/locks/locks.ts';
import { everyResource, typeOf } from '../coordinator/tasks/admission.ts';
import { lockId } from '../coordinator/tasks/collisions.ts';
import type { Task } from '../coordinator/tasks/task.ts';
import type { WaitingFor } from '../coordinator/tasks/task-judge.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { encodeId } from '../redis/ids.ts';
import type { CriticalityRow } from '../reviewer-policy.ts';
import { blastRadius, reachable } from './blast.ts';
import { criticalityOf } from './criticality.ts';
import { type Holding, magnitudeOf, type Preview, previewOf } from './preview.ts';
import { assessRisk, type Finding, type Risk, type RiskThresholds } from './risk.ts';

export interface AssessorOptions {
  readonly store: TaskStore;
  readonly locks: Locks;
  readonly thresholds: () => Promise<RiskThresholds>;
  readonly criticality: () => readonly CriticalityRow[];
  readonly clock: Clock;
}

export interface Judged {
  readonly version: number;
  readonly isOfFile: boolean;
}

export interface Assessment {
  readonly preview: Preview;
  readonly risk: Risk;
}

/** How many earlier tasks on the same things are looked at for failures. */
const REMEMBERED = 20;
const SHARING = 64;

/** Looks at a task and its surroundings, and says how risky it is. Nothing that its author claims about the risk counts. */
export class Assessor {
  readonly #options: AssessorOptions;

  constructor(options: AssessorOptions) {
    this.#options = options;
  }

  async assess(task: Task, { version, isOfFile }: Judged): Promise<Assessment> {
    const { clock, thresholds, criticality } = this.#options;
    const table = criticality();
    const resources = everyResource(task);
    const [holders, held, affected, failures] = await Promise.all([
      this.#holders(task),
      this.#held(task.task_id),
      this.#affected(task),
      this.#failures(task),
    ]);
    const critical = criticalityOf(resources, table);
    const around = { version, at: isoTime(clock), holders, criticality: critical.value, isOfFile, ...held };
    const findings = {
      resource_criticality: critical,
      change_magnitude: magnitudeOf(task, isOfFile),
      blast_radius: blastRadius({ tasks: affected, resources }, table),
      historical_failure_rate: failures,
    };
    return { preview: previewOf(task, around), risk: assessRisk(findings, await thresholds()) };
  }

  /** The same for many of a file that are not in Redis yet: who waits for them is asked for, and they have no past. */
  async assessAll(tasks: readonly Task[], waitingFor: WaitingFor): Promise<Map<string, Risk>> {
    const [table, thresholds] = [this.#options.criticality(), await this.#options.thresholds()];
    const risks = new Map<string, Risk>();
    for (const task of tasks) {
      const resources = everyResource(task);
      const waiting = await reachable(task.task_id, waitingFor);
      const findings = {
        resource_criticality: criticalityOf(resources, table),
        change_magnitude: magnitudeOf(task, true),
        blast_radius: blastRadius({ tasks: waiting.size, resources }, table),
        historical_failure_rate: NO_PAST,
      };
      risks.set(task.task_id, assessRisk(findings, thresholds));
    }
    return risks;
  }

  async #holders(task: Task): Promise<Map<string, readonly Holding[]>> {
    const { locks } = this.#options;
    const found = await Promise.all(
      everyResource(task).map(async (resource): Promise<[string, Holding[]]> => {
        const { holders } = await locks.look(resourceLock(resource.type, lockId(resource)));
        const holdings = holders.map(({ agent, expiresAt, purpose, mode }) => ({
          agent,
          until: expiresAt,
          purpose,
          isShared: mode === 'shared',
        }));
        return [`${resource.type}:${resource.id}`, holdings];
      }),
    );
    return new Map(found);
  }

  async #held(id: string) {
    const { connection, keys } = this.#options.store;
    const redis = connection.commands;
    const [quarantine, openDependencies] = await Promise.all([
      redis.hget(keys.taskRecord(id), 'quarantine'),
      redis.smembers(keys.openDependencies(id)),
    ]);
    return { quarantine: quarantine ?? '', openDependencies };
  }

  async #affected(task: Task): Promise<number> {
    const { connection, keys } = this.#options.store;
    const next = async (ids: readonly string[]) =>
      (await Promise.all(ids.map((id) => connection.commands.smembers(keys.dependents(id))))).flat();
    const [waiting, sharing] = await Promise.all([reachable(task.task_id, next), this.#sharing(task, SHARING)]);
    const own = this.#options.store.adeId(task.task_id);
    const ade = [...waiting].map((id) => this.#options.store.adeId(id) as string);
    return new Set([...ade, ...sharing].filter((id) => id !== own)).size;
  }

  /** Tasks on the same resources, newest first. */
  async #sharing(task: Task, most: number): Promise<string[]> {
    const { connection, keys } = this.#options.store;
    const lists = everyResource(task).map((resource) =>
      connection.commands.zrevrange(keys.tasksByResource(resource.type, lockId(resource)), 0, most - 1),
    );
    const tags = (task.tags ?? []).map((tag) =>
      connection.commands.zrevrange(keys.tasksByTag(encodeId('tag', tag)), 0, most - 1),
    );
    return [...new Set((await Promise.all([...lists, ...tags])).flat())];
  }

  /** How often what was done to the same things, or under the same words, went wrong. */
  async #failures(task: Task): Promise<Finding> {
    const { store } = this.#options;
    const own = store.adeId(task.task_id);
    const earlier = [
      ...(task.supersedes ? [store.adeId(task.supersedes)] : []),
      ...(await this.#sharing(task, SHARING)),
    ];
    const known = [...new Set(earlier.filter((id) => id !== own))].slice(0, REMEMBERED);
    const { connection, keys } = store;
    const results = await Promise.all(known.map((id) => connection.commands.hget(keys.taskExecution(id), 'result')));
    const ended = results.filter((result) => result !== null && result !== 'cancelled');
    if (ended.length === 0) return NO_PAST;
    const failed = ended.filter((result) => result !== 'success').length;
    return {
      value: Math.round((failed / ended.length) * 100),
      because: `${failed} of the last ${ended.length} on the same things failed`,
    };
  }
}

const NO_PAST: Finding = { value: 0, because: 'nothing like it has run before' };

/** As `ade:task:{id}:risk` has it. */
export function riskFields(risk: Risk, isUnasked: boolean): (string | number)[] {
  const { score, exact, level, factors, assessed_by } = risk;
  return Object.entries({
    score,
    exact,
    level,
    factors: JSON.stringify(factors),
    auto_approvable: String(isUnasked),
    assessed_by,
  }).flat();
}

/** What policies look at. */
export const petitionOf = (task: Task, risk: number, authorRoles: readonly string[]) => ({
  type: typeOf(task),
  resources: everyResource(task),
  risk,
  authorRoles,
});
