import { access, glob } from 'node:fs/promises';
import { ReeveError, reason } from '../errors.ts';

/** Where manifests are looked for, in a folder as in a repository. */
export const MANIFESTS = ['**/manifest.{yaml,yml}', '{tools,prompts,skills}/**/*.{yaml,yml}'];

/** How many manifests a folder holds. */
export async function countManifests(path: string): Promise<number> {
  try {
    await access(path);
    const found = new Set<string>();
    for await (const file of glob(MANIFESTS, { cwd: path })) found.add(file);
    return found.size;
  } catch (error) {
    throw new ReeveError('ASSETS_UNREADABLE', { path, problem: reason(error) }, { cause: error });
  }
}
