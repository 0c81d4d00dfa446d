import { ReeveError } from '../../errors.ts';
import type { CommandModule } from '../main.ts';
import { ask, fileText } from '../question.ts';
import { render } from '../render.ts';

/** --set is JSON and --text a file here; the daemon gets values. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { text, set, ...rest } = typed.input;
  if (text === undefined && set === undefined) {
    throw new ReeveError('USAGE', {
      problem: 'nothing to change was given',
      hint: `reeve asset update ID --set '{"version":"1.1.0"}'`,
    });
  }
  const answer = await ask(
    typed,
    {
      ...rest,
      ...(set !== undefined && { set: parts(set as string) }),
      ...(text !== undefined && { text: await fileText(text as string, surroundings) }),
    },
    surroundings,
  );
  if (output.form === 'json') output.json(answer);
  else render(output, answer);
  return 0;
};

function parts(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new ReeveError('USAGE', { problem: '--set is not JSON', hint: `Write it like --set '{"version":"1.1.0"}'` });
  }
}
