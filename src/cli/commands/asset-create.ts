import type { CommandModule } from '../main.ts';
import { ask, fileText } from '../question.ts';
import { render } from '../render.ts';

/** The argument is a file here; the daemon gets its text. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { text, manifest, ...rest } = typed.input;
  const answer = await ask(
    typed,
    {
      ...rest,
      ...(manifest !== undefined && { manifest: JSON.parse(manifest as string) as unknown }),
      ...(text !== undefined && { text: await fileText(text as string, surroundings) }),
    },
    surroundings,
  );
  if (output.form === 'json') output.json(answer);
  else render(output, answer);
  return 0;
};
