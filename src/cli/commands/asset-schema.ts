import { manifestSchema } from '../../registry/manifest-schema.ts';
import type { CommandModule } from '../main.ts';

/** Always JSON: it is a file for editors. */
export const run: CommandModule['run'] = async (_typed, output) => {
  output.print(JSON.stringify(manifestSchema(), undefined, 2));
  return 0;
};
