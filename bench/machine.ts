import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { systemClock } from '../src/clock.ts';
import { loadConfig } from '../src/config.ts';
import { silentLog } from '../src/log.ts';
import { lookForRedisServer } from '../src/redis/find-server.ts';

/** What a figure means nothing without. No names and no addresses: it is checked in. */
export async function describeMachine() {
  const { dataDir, cacheDir } = loadConfig({ env: {} }).config;
  const where = { dataDir, cacheDir, path: process.env.PATH ?? '' };
  const redis = await lookForRedisServer({ ...where, clock: systemClock, log: silentLog });
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    /** At the end of the run. Beyond the cores, only ratios mean anything, and they not much. */
    load: Math.round((loadavg()[1] ?? 0) * 10) / 10,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    system: distribution() ?? `${type()} ${release()}`,
    node: process.versions.node,
    redis: redis ? `${redis.flavour} ${redis.version}` : 'none',
    commit: commit(),
  };
}

function distribution(): string | undefined {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return 'unknown';
  }
}
