import { access, mkdir, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** What bin/reeve and the embedded Redis use of a system. */
const ALWAYS = ['sh', 'uname', 'dirname', 'readlink', 'sleep', 'setpriv'];

/** A PATH with the bare necessities and these programs, as far as this machine has them; `bin` is made to hold them. */
export async function aPathWith(bin: string, ...names: string[]): Promise<string> {
  await mkdir(bin, { recursive: true });
  for (const name of [...ALWAYS, ...names]) {
    const found = await find(name);
    if (found) await symlink(found, join(bin, name));
  }
  return bin;
}

async function find(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const file = join(folder, name);
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}
