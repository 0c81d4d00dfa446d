import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError } from '../errors.ts';
import type { Answer, AnswerOutcome, Answers } from './answers.ts';
import type { Assessor } from './assessor.ts';
import type { ApprovalDesk } from './desk.ts';
import type { ApprovalRequest } from './request.ts';
import type { RiskThresholds } from './risk.ts';
import { isFile, readTask } from './written-task.ts';

export interface BatchOptions {
  readonly tasks: Tasks;
  readonly desk: ApprovalDesk;
  readonly assessor: Assessor;
  readonly thresholds: () => Promise<RiskThresholds>;
  readonly answers: Answers;
}

/** What may be asked for besides. Four eyes, content and state are looked at in any case. */
export interface BatchWishes {
  readonly isDry?: boolean;
  /** Each task is not assessed anew. */
  readonly skipValidation?: boolean;
  /** What passes is handed out before all else. */
  readonly applyImmediately?: boolean;
}

/** Several answers at once: all of them, or none. */
export class Batch {
  readonly #options: BatchOptions;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  async answer(by: string, answers: readonly Answer[], wishes: BatchWishes = {}): Promise<AnswerOutcome[]> {
    const { isDry = false, skipValidation = false, applyImmediately = false } = wishes;
    const thresholds = await this.#options.thresholds();
    const refused = await Promise.all(answers.map((one) => this.#whyNot(one, wishes, thresholds)));
    const isBad = refused.some((why) => why !== undefined);
    const outcomes = await this.#options.answers.answer(by, answers, {
      isDry: isDry || isBad,
      isFirst: applyImmediately,
      detail: JSON.stringify({
        batch: answers.length,
        skip_validation: skipValidation,
        apply_immediately: applyImmediately,
      }),
    });
    return outcomes.map((one, at) => {
      const why = refused[at];
      if ('error' in one || why === undefined) return one;
      const { approval } = one;
      return { approval, error: new ReeveError('APPROVAL_DENIED', { caller: by, approval, why }) };
    });
  }

  /** What stands against answering it with others. Questions that are settled or unknown are told of by the answer itself. */
  async #whyNot({ approval, action }: Answer, wishes: BatchWishes, { critical, auto_approve }: RiskThresholds) {
    const request = await this.#options.desk.find(approval);
    if (request?.status !== 'PENDING') return undefined;
    if (request.risk >= critical) return 'its risk is critical, and what is critical is answered by itself';
    const isSpecial = wishes.skipValidation || wishes.applyImmediately;
    if (isSpecial && request.risk >= auto_approve) {
      return `its risk ${request.risk} is not below ${auto_approve}, and so nothing is skipped or hurried for it`;
    }
    return wishes.skipValidation || action !== 'approve' ? undefined : this.#invalidity(request, critical);
  }

  /** The task as it would be assessed now: nobody looks at each of many as closely as at one. */
  async #invalidity({ task_id, risk: asked }: ApprovalRequest, critical: number): Promise<string | undefined> {
    const { tasks, assessor } = this.#options;
    const { task, version, author } = await readTask(tasks, task_id.slice(tasks.store.head.length));
    const { preview, risk } = await assessor.assess(task, { version, isOfFile: isFile(author) });
    if (preview.errors.length > 0) return `its preview has errors: ${preview.errors.join('; ')}`;
    if (risk.exact >= critical) return `its risk has become critical: ${risk.score}`;
    return risk.score > asked ? `its risk has risen from ${asked} to ${risk.score} since it was asked` : undefined;
  }
}
