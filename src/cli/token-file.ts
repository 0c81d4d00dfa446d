import { readFileSync, statSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const tokenFile = (dataDir: string) => join(dataDir, 'token');
const OTHERS = 0o077;

/**
 * The token that `reeve token create --save` kept for the commands of this user. Whoever can read the data directory can read the
 * database in it, too, so it gives away nothing more; one that others could have read or put there is not used.
 */
export function readTokenFile(dataDir: string): string | undefined {
  const file = tokenFile(dataDir);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found || (found.mode & OTHERS) !== 0 || found.uid !== process.getuid?.()) return undefined;
  return readFileSync(file, 'utf8').trim() || undefined;
}

/** By rename, so that it is never there half, nor with the rights of an older file. */
export async function saveToken(dataDir: string, token: string): Promise<string> {
  const file = tokenFile(dataDir);
  const fresh = `${file}.${crypto.randomUUID()}`;
  await writeFile(fresh, `${token}\n`, { mode: 0o600 });
  await rename(fresh, file);
  return file;
}
