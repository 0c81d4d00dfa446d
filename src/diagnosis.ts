import type { Clock } from './clock.ts';
import { inspectPrdFile, type PrdFile } from './coordinator/prd/prd-file.ts';
import type { Config } from './settings.ts';
import type { Store } from './store/database.ts';
import { countManifests } from './sync/asset-folder.ts';
import { githubCheck } from './system/checks/github.ts';
import { dataDirCheck, nodeCheck, portCheck } from './system/checks/host.ts';
import { type RedisProbe, redisChecks } from './system/checks/redis.ts';
import { type Check, fail, ok, warn } from './system/doctor.ts';

export interface Probes {
  readonly config: Config;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
  readonly prd: PrdFile;
  /** The folder of assets, and whether a person named it. */
  readonly assets: { readonly dir: string; readonly named: boolean };
  /** Where a daemon of this data directory listens, if one does. */
  readonly listening?: string | undefined;
  /** A Redis that answers; or what to say instead of asking it. */
  readonly redis: RedisProbe | Check;
  readonly store: Store | Check;
}

/** What `reeve doctor` looks at, from the ground up. The daemon and the command line ask the same questions. */
export function checklist({ config, clock, fetch, prd, assets, listening, redis, store }: Probes): Check[] {
  const { host, port } = config.http;
  const { apiUrl, repo, token } = config.github;
  return [
    nodeCheck(process.versions.node),
    dataDirCheck(config.dataDir),
    portCheck(host, port, listening),
    ...('client' in redis ? redisChecks(redis) : [redis]),
    'check' in store ? storeCheck(store) : store,
    prdCheck(prd),
    repo ? githubCheck({ apiUrl, repo, token, clock, fetch }) : assetsCheck(assets),
    ...(token && !repo ? [githubCheck({ apiUrl, repo, token, clock, fetch })] : []),
    identityCheck,
  ];
}

const storeCheck = (store: Store): Check => ({
  name: 'database',
  run: async () => {
    const { latencyMs } = await store.check();
    return [ok(`${store.describe()} takes writes (${latencyMs} ms)`)];
  },
});

const prdCheck = ({ path, sample }: PrdFile): Check => ({
  name: 'tasks',
  run: async () => {
    const { format, tasks } = await inspectPrdFile(path);
    return [ok(`${path}: ${tasks} tasks, format ${format}${sample ? ' (the sample)' : ''}`)];
  },
});

const assetsCheck = ({ dir, named }: Probes['assets']): Check => ({
  name: 'assets',
  run: async () => {
    const manifests = await countManifests(dir, { named });
    return [
      manifests > 0
        ? ok(`${dir}: ${manifests} manifests`)
        : warn(`${dir} holds no manifests`, 'Put manifest.yaml files there, or set GITHUB_REPO.'),
    ];
  },
});

const identityCheck: Check = {
  name: 'identity',
  run: async () => [ok('no API token exists: callers on this machine act as the admin "local", others are refused')],
};

/** For the command line, when something cannot be asked because it is down. */
export const unreachable = (name: string, says: string, fix: string): Check => ({
  name,
  run: async () => [fail(says, fix)],
});
