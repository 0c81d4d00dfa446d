import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a daemon tells about itself in its data directory, for the command line to find it by. */
export interface DaemonFile {
  readonly pid: number;
  readonly since: string;
  /** Where its HTTP door is; "starting" until it is open. */
  readonly address: string;
  readonly version: string;
  /** When the process began, in the kernel's own ticks: tells it from a later one with the same number. */
  readonly born?: string;
}

/** The daemon of this data directory, or undefined when there is none or it died without a farewell. */
export async function readDaemonFile(dir: string): Promise<DaemonFile | undefined> {
  const text = await readFile(daemonFile(dir), 'utf8').catch(() => undefined);
  const found = text === undefined ? undefined : parseDaemonFile(text);
  return found && (await isSameProcess(found)) ? found : undefined;
}

/** By rename, so that a reader sees the old file or the new one, never half of one. */
export async function writeDaemonFile(dir: string, content: DaemonFile): Promise<void> {
  const fresh = join(dir, `.daemon-${crypto.randomUUID()}.json`);
  await writeFile(fresh, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
  await rename(fresh, daemonFile(dir));
}

export const removeDaemonFile = (dir: string): Promise<void> => rm(daemonFile(dir), { force: true });

const daemonFile = (dir: string) => join(dir, 'daemon.json');

function parseDaemonFile(text: string): DaemonFile | undefined {
  try {
    const { pid, since, address, version, born } = JSON.parse(text) as Record<string, unknown>;
    if (typeof pid !== 'number' || ![since, address, version].every((each) => typeof each === 'string')) {
      return undefined;
    }
    return { pid, since, address, version, ...(typeof born === 'string' && { born }) } as DaemonFile;
  } catch {
    return undefined;
  }
}

async function isSameProcess({ pid, born }: DaemonFile): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (failure) {
    // A process of another user is alive, though not ours to signal.
    if ((failure as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const found = await birthOf(pid);
  return !born || !found || born === found;
}

/** Field 22 of /proc/PID/stat. The second field is a name in parentheses that may hold spaces. Linux only. */
export async function birthOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}
