import { EXIT } from '../../error-catalogue.ts';
import type { CommandModule } from '../main.ts';
import { ask } from '../question.ts';
import { printable } from '../render.ts';

interface Difference {
  readonly differs: boolean;
  readonly fields: readonly string[];
  readonly patch: string;
}

/** The patch as it is, so that it can be piped into other tools; 10 when there is one. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const answer = (await ask(typed, typed.input, surroundings)) as Difference;
  if (output.form === 'json') output.json(answer);
  else for (const text of answer.patch.trimEnd().split('\n')) if (text) output.print(coloured(text));
  if (answer.differs) output.hint(`differs in ${answer.fields.join(', ')}`);
  return answer.differs ? EXIT.differs : EXIT.ok;

  function coloured(text: string): string {
    const shown = printable(text);
    if (/^[+](?![+])/.test(shown)) return output.style('green', shown);
    return /^-(?!-)/.test(shown) ? output.style('red', shown) : shown;
  }
};
