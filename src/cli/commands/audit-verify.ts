import { EXIT } from '../../error-catalogue.ts';
import type { CommandModule } from '../main.ts';
import { ask } from '../question.ts';
import { line } from '../render.ts';

interface Verdict {
  readonly ok: boolean;
  readonly rows: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken?: { readonly seq: number; readonly problem: string };
  readonly kept?: { readonly seq: number };
}

/** A chain that does not hold is an answer, and an exit code of its own. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const answer = (await ask(typed, typed.input, surroundings)) as Verdict;
  const { ok, rows, head, broken, kept } = answer;
  if (output.form === 'json') output.json(answer);
  else if (ok) output.print(`ok ${line({ rows, head: `${head.seq}:${head.hash}`, compared_with: kept?.seq })}`);
  else output.print(`broken ${line({ row: broken?.seq, problem: broken?.problem, good: rows })}`);
  return ok ? EXIT.ok : EXIT.differs;
};
