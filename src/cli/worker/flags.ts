import { z } from 'zod';
import { ReeveError } from '../../errors.ts';
import type { Surroundings } from '../main.ts';

export const seconds = z.coerce.number().positive();
export const count = z.coerce.number().int().positive();
export const flag = z.boolean().or(z.stringbool()).default(false);

/** The flags of a command that claims, checked. Who it is may be said by the environment. */
export function readFlags<S extends z.ZodType>(
  schema: S,
  { input, words, env }: { input: object; words: string; env: Surroundings['env'] },
): z.output<S> {
  const parsed = schema.safeParse({ ...(env.REEVE_AGENT && { agent: env.REEVE_AGENT }), ...input });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const name = String(issue?.path[0] ?? '').replaceAll('_', '-');
  throw new ReeveError('USAGE', { problem: `--${name}: ${issue?.message}`, hint: `reeve ${words} --help` });
}

/** a,b; undefined where nothing was said. */
export const list = z
  .string()
  .transform((text) => text.split(',').map((word) => word.trim()))
  .pipe(z.array(z.string().min(1)))
  .optional();

export const ms = (value: number | undefined): number | undefined => (value === undefined ? undefined : value * 1000);
