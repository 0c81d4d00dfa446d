import { existsSync } from 'node:fs';
import { access, glob } from 'node:fs/promises';
import { ReeveError, reason } from '../errors.ts';

/** Where manifests are looked for, in a folder as in a repository. */
export const MANIFESTS = ['**/manifest.{yaml,yml}', '{tools,prompts,skills}/**/*.{yaml,yml}'];

/** How many manifests a folder holds. One that nobody named and that is not there holds none. */
export async function countManifests(path: string, { named }: { readonly named: boolean }): Promise<number> {
  if (!named && !existsSync(path)) return 0;
  try {
    await access(path);
    const found = new Set<string>();
    for await (const file of glob(MANIFESTS, { cwd: path })) found.add(file);
    return found.size;
  } catch (error) {
    throw new ReeveError('ASSETS_UNREADABLE', { path, problem: reason(error) }, { cause: error });
  }
}
