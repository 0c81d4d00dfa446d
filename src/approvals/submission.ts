import type { TaskState } from '../coordinator/tasks/task.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError, reason as reasonOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import { riskFields } from './assessor.ts';
import type { Rules } from './rules.ts';
import { type Ruling, rulingOf } from './ruling.ts';
import { submit } from './scripts.ts';
import { type Terms, termArgs } from './terms.ts';
import { isFile, readTask } from './written-task.ts';

export interface SubmissionOptions {
  readonly tasks: Tasks;
  readonly rules: Rules;
  readonly terms: () => Promise<Terms>;
  readonly log: Logger;
}

/** How many at a time are asked for anew. */
const LEFT = 100;

/** From a draft to wherever it belongs: through the gate, or before people. */
export class Submission {
  readonly #options: SubmissionOptions;

  constructor(options: SubmissionOptions) {
    this.#options = options;
  }

  submit(task: string, by: string, { dueSeconds }: Wishes = {}): Promise<Ruling> {
    return this.#submit(task, { by, isPatient: false, dueSeconds });
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
      if (isFile(author ?? '') && !at) drafts.push(id);
    }
    const local = (ids: readonly string[]) => ids.map((id) => id.slice(head.length));
    await this.ask(local(submitted), { drafts: false });
    await this.ask(local(drafts), { drafts: true });
    return submitted.length + drafts.length;
  }

  async #submit(id: string, how: Submitted, tries = 3): Promise<Ruling> {
    const { tasks, rules, terms } = this.#options;
    const { by, isPatient } = how;
    const found = await readTask(tasks, id);
    const { task, state, version } = found;
    if (state !== 'DRAFT' && state !== 'SUBMITTED') {
      throw new ReeveError('TASK_STATE', { task: id, state, what: 'submitting', wanted: 'drafts' });
    }
    const { assessment, assignment } = await rules.rule(task, { ...found, makers: [...found.makers, by] });
    const { preview, risk } = assessment;
    const problem = preview.errors.join('; ');
    if (problem && !isPatient) throw new ReeveError('PREVIEW_FAILED', { task: id, problem });
    if (assignment.outcome === 'nobody' && !isPatient) {
      throw new ReeveError('NOBODY_TO_ASK', { task: id, why: assignment.because });
    }
    const { asked, needs, dueSeconds } = assignment.outcome === 'ask' ? assignment : NOBODY;
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
        needs: JSON.stringify(needs),
        questions: asked.map(({ to, name, chain }) => ({ to, name, chain: JSON.stringify(chain) })),
        priority: task.urgency ?? 'NORMAL',
        risk_score: risk.score,
        policies: JSON.stringify(assignment.policies),
        ...termArgs(await terms(), how.dueSeconds ?? dueSeconds),
      },
    );
    const [word, ...ids] = reply;
    if (word === 'CHANGED' && tries > 1) return this.#submit(id, how, tries - 1);
    if (word === 'CHANGED') throw new ReeveError('TASK_CHANGED', { task: id });
    if (word === 'UNKNOWN') throw new ReeveError('TASK_UNKNOWN', { task: id });
    if (word === 'STATE') {
      throw new ReeveError('TASK_STATE', { task: id, state: ids[0] ?? '', what: 'submitting', wanted: 'drafts' });
    }
    return rulingOf(task, assessment, assignment, { state: word as TaskState, ids });
  }
}

/** What whoever submits it asks for besides. */
export interface Wishes {
  /** How long people have; never longer than the longest. */
  readonly dueSeconds?: number | undefined;
}

interface Submitted extends Wishes {
  readonly by: string;
  readonly isPatient: boolean;
}

const NOBODY = { asked: [], needs: [], dueSeconds: undefined } as const;
const OUTCOME = { unasked: 'pass', ask: 'ask', nobody: 'wait' } as const;
