import { ReeveError } from '../../errors.ts';
import type { CommandModule } from '../main.ts';

export const run: CommandModule['run'] = async ({ input }, output, { manifest }) => {
  const words = (input.command as string[]).join(' ');
  const command = manifest.commands.find((one) => one.words.join(' ') === words);
  if (!command?.output) {
    const known = manifest.commands.filter((one) => one.output).map((one) => one.words.join(' '));
    throw new ReeveError('USAGE', { problem: `there is no schema of "${words}"`, hint: `One of: ${known.join(', ')}` });
  }
  output.print(JSON.stringify({ input: command.input, output: command.output }, undefined, 2));
  return 0;
};
