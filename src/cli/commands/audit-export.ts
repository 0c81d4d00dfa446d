import { daemonOf } from '../client.ts';
import type { CommandModule } from '../main.ts';

const PAGE = 1_000;

interface Row {
  readonly seq: number;
}

/** All rows from a number on, one JSON object each, in the order of the chain: what somebody else keeps is proof. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const client = await daemonOf(flags, surroundings);
  const { signal } = surroundings;
  const all: Row[] = [];
  for (let after = Number(input.after ?? 0); ; ) {
    const { answer } = await client.ask({ method: 'GET', path: '/audit', input: { after, limit: PAGE }, signal });
    const { items } = answer as { items: Row[] };
    if (output.form === 'json') all.push(...items);
    else for (const item of items) output.print(JSON.stringify(item));
    const last = items.at(-1);
    if (!last || items.length < PAGE) break;
    after = last.seq;
  }
  if (output.form === 'json') output.json({ items: all });
  return 0;
};
