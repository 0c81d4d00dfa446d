export type PackageManager = 'apt' | 'dnf' | 'apk' | 'pacman' | 'zypper' | 'brew';

/** What is known about the system a package would be installed on. */
export interface SystemFacts {
  readonly platform: NodeJS.Platform;
  /** The text of /etc/os-release; empty where there is none. */
  readonly osRelease: string;
  readonly isRoot: boolean;
}

type Step = readonly [program: string, ...args: string[]];

/** How to install a Redis server on a system: the words to type, and the same as programs with arguments. */
export interface InstallCommand {
  readonly manager: PackageManager;
  readonly text: string;
  readonly steps: readonly Step[];
}

/** Undefined where the system is not known well enough to name one command that works. */
export function installCommand({ platform, osRelease, isRoot }: SystemFacts): InstallCommand | undefined {
  const release = parseOsRelease(osRelease);
  const manager = platform === 'darwin' ? 'brew' : packageManager(release);
  if (!manager) return undefined;
  const install: Step = [...INSTALL[manager], packageName(manager, release)];
  // A fresh Debian image has no package lists, without which apt finds nothing.
  const steps: readonly Step[] = manager === 'apt' ? [['apt-get', 'update'], install] : [install];
  // brew refuses to run as root, and the others refuse to run as anyone else.
  const before = isRoot || manager === 'brew' ? '' : 'sudo ';
  return { manager, steps, text: steps.map((step) => before + step.join(' ')).join(' && ') };
}

const INSTALL: Readonly<Record<PackageManager, Step>> = {
  apt: ['apt-get', 'install', '-y', '--no-install-recommends'],
  dnf: ['dnf', 'install', '-y'],
  apk: ['apk', 'add'],
  pacman: ['pacman', '-S', '--noconfirm'],
  zypper: ['zypper', '--non-interactive', 'install'],
  brew: ['brew', 'install'],
};

const MANAGERS: Readonly<Record<string, PackageManager>> = {
  debian: 'apt',
  ubuntu: 'apt',
  fedora: 'dnf',
  rhel: 'dnf',
  centos: 'dnf',
  amzn: 'dnf',
  alpine: 'apk',
  arch: 'pacman',
  suse: 'zypper',
  opensuse: 'zypper',
};

interface OsRelease {
  readonly id: string;
  readonly like: readonly string[];
  readonly version: number;
}

/** A derivative names its ancestors in ID_LIKE, nearest first. */
function packageManager({ id, like }: OsRelease): PackageManager | undefined {
  return [id, ...like].map((name) => MANAGERS[name] ?? MANAGERS[name.split('-')[0]!]).find(Boolean);
}

/** Fedora, RHEL 10, Amazon Linux and Arch replaced Redis with Valkey after its change of licence. */
function packageName(manager: PackageManager, { id, version }: OsRelease): string {
  if (manager === 'apt') return 'redis-server';
  if (manager === 'pacman') return 'valkey';
  if (manager === 'dnf') return id === 'fedora' || id === 'amzn' || version >= 10 ? 'valkey' : 'redis';
  return 'redis';
}

function parseOsRelease(text: string): OsRelease {
  const field = (name: string) => {
    const value = new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
    return value
      .trim()
      .replace(/^(["'])(.*)\1$/, '$2')
      .toLowerCase();
  };
  return {
    id: field('ID'),
    like: field('ID_LIKE').split(/\s+/).filter(Boolean),
    version: Number.parseInt(field('VERSION_ID'), 10) || 0,
  };
}
