import { EXIT } from '../../error-catalogue.ts';
import type { CommandModule } from '../main.ts';
import { ask } from '../question.ts';
import { type Change, show } from '../views/change.ts';

/** Asks what became of a change; the exit code says it to scripts: 0 approved, 5 rejected, 9 still nothing. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const change = (await ask(typed, typed.input, surroundings)) as Change;
  if (output.form === 'json') output.json(change);
  else show(output, change);
  if (change.outcome === 'rejected') return EXIT.conflict;
  return change.outcome === 'pending' ? EXIT.timeout : EXIT.ok;
};
