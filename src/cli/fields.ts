import { ReeveError } from '../errors.ts';
import type { Command } from './manifest.ts';

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** Refuses `--json id,titel`: a field that no answer can have would be missing from each without a word. */
export function checkFields({ words, output }: Command, asked: unknown): void {
  if (typeof asked !== 'string') return;
  const known = fieldsOf(output as Schema | undefined);
  const unknown = asked.split(',').filter((name) => known && !known.includes(name.trim()));
  if (unknown.length === 0 || !known) return;
  const problem = `reeve ${words.join(' ')} has no field ${unknown.join(', ')}`;
  throw new ReeveError('USAGE', { problem, hint: `The fields: ${known.join(', ')}` });
}

/** Of the items of a list, else of the answer itself. Undefined where it may hold anything. */
function fieldsOf(schema: Schema | undefined): string[] | undefined {
  const item = schema?.properties?.items?.items;
  const named = item?.$ref?.replace('#/$defs/', '');
  const row = named ? schema?.$defs?.[named] : (item ?? schema);
  return row?.properties && Object.keys(row.properties);
}
