import { ReeveError } from '../../errors.ts';
import type { CommandModule } from '../main.ts';
import { ask, fileText } from '../question.ts';
import { render } from '../render.ts';

/** --text is a file here; the daemon gets its text. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { text, ...rest } = typed.input;
  if (text === undefined && rest.set === undefined) {
    throw new ReeveError('USAGE', {
      problem: 'nothing to change was given',
      hint: 'reeve asset update ID --set version=1.1.0',
    });
  }
  const input = text === undefined ? rest : { ...rest, text: await fileText(text as string, surroundings) };
  const answer = await ask(typed, input, surroundings);
  if (output.form === 'json') output.json(answer);
  else render(output, answer);
  return 0;
};
