import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.ts';
import { inspectPrdFile, type PrdFile } from './coordinator/prd/prd-file.ts';
import type { FileStore } from './files/file-store.ts';
import { listTokens } from './identity/tokens.ts';
import { Journal } from './journal/journal.ts';
import type { Config } from './settings.ts';
import type { Store } from './store/database.ts';
import { candidates } from './sync/differ.ts';
import { type MadeSource, makeSource, sourceSettings } from './sync/sources.ts';
import { githubCheck } from './system/checks/github.ts';
import { dataDirCheck, nodeCheck, portCheck } from './system/checks/host.ts';
import { type RedisProbe, redisChecks } from './system/checks/redis.ts';
import { type Check, fail, ok, warn } from './system/doctor.ts';

export interface Probes {
  readonly config: Config;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
  /** Where programs are: git, for a source that is a clone. */
  readonly path: string;
  readonly prd: PrdFile;
  /** Whether a person named the folder of assets. */
  readonly isDirNamed: boolean;
  /** Where a daemon of this data directory listens, if one does. */
  readonly listening?: string | undefined;
  /** A Redis that answers; or what to say instead of asking it. */
  readonly redis: RedisProbe | Check;
  readonly store: Store | Check;
  /** Where files are kept; without it, nobody looks. */
  readonly files?: FileStore | undefined;
}

/** What `reeve doctor` looks at, from the ground up. The daemon and the command line ask the same questions. */
export function checklist(probes: Probes): Check[] {
  const { config, clock, fetch, path, prd, isDirNamed, listening, redis, store, files } = probes;
  const { host, port } = config.http;
  const { apiUrl, token } = config.github;
  const sources = sourceSettings(config, isDirNamed);
  const github = (repo: string | undefined, own = token, at = apiUrl) =>
    githubCheck({ apiUrl: at, repo, token: own, clock, fetch });
  return [
    nodeCheck(process.versions.node),
    dataDirCheck(config.dataDir),
    portCheck(host, port, listening),
    ...('client' in redis ? redisChecks(redis) : [redis]),
    'check' in store ? storeCheck(store) : store,
    ...(files ? [filesCheck(files)] : []),
    prdCheck(prd),
    ...sources.map((one) =>
      one.github
        ? github(one.github, one.token, one.apiUrl)
        : assetsCheck(makeSource(one, config, { fetch, clock, surroundings: { PATH: path, HOME: '' } })),
    ),
    ...(token && sources.every((one) => !one.github) ? [github(undefined)] : []),
    ...('check' in store ? [identityCheck(store, clock), journalCheck(store, clock)] : []),
  ];
}

const storeCheck = (store: Store): Check => ({
  name: 'database',
  run: async () => {
    const { latencyMs } = await store.check();
    return [ok(`${store.describe()} takes writes (${latencyMs} ms)`)];
  },
});

const filesCheck = (files: FileStore): Check => ({
  name: 'files',
  run: async () => {
    const [key, bytes] = [`probes/${randomUUID()}`, Buffer.from('reeve')];
    await files.put(key, bytes);
    const read = await files.read(key, { offset: 1, length: 3 });
    await files.remove(key);
    if (read?.bytes.toString() === 'eev') return [ok(`${files.place} takes outputs and stashes`)];
    return [fail(`${files.place} does not give back what was put there`, 'Check files.dir or files.s3.')];
  },
});

const prdCheck = ({ path, sample }: PrdFile): Check => ({
  name: 'tasks',
  run: async () => {
    const { format, tasks } = await inspectPrdFile(path);
    return [ok(`${path}: ${tasks} tasks, format ${format}${sample ? ' (the sample)' : ''}`)];
  },
});

const assetsCheck = ({ source, include, name }: MadeSource): Check => ({
  name: 'assets',
  run: async () => {
    const signal = AbortSignal.timeout(LOOK_MS);
    const head = await source.head({ signal });
    const listed = await source.list(head.outcome === 'at' ? head.commit : '', signal);
    const { entries } = await candidates(listed, include);
    return [
      entries.size > 0
        ? ok(`${name}, ${source.address}: ${entries.size} manifests`)
        : warn(`${source.address} holds no manifests`, 'Put manifest.yaml files there, or set GITHUB_REPO.'),
    ];
  },
});
const LOOK_MS = 10_000;

const identityCheck = (store: Store, clock: Clock): Check => ({
  name: 'identity',
  run: async () => {
    const tokens = await listTokens(store, clock);
    if (tokens.length === 0)
      return [
        ok(
          'no API token exists: callers on this machine act as the admin "local", others are refused; reeve token create ends that',
        ),
      ];
    const live = tokens.filter(({ state }) => state === 'live');
    const soon = new Date(clock.now() + SOON_MS).toISOString();
    const ending = live.filter(({ expires_at }) => expires_at !== undefined && expires_at < soon);
    const says = `every call needs a token; ${live.length} of them live`;
    if (ending.length === 0) return [ok(says)];
    const names = ending.map(({ token_id, user, expires_at }) => `${token_id} of ${user} (${expires_at})`).join(', ');
    return [warn(`${says}; ending within a week: ${names}`, 'reeve token create --user ID')];
  },
});
const journalCheck = (store: Store, clock: Clock): Check => ({
  name: 'journal',
  run: async () => {
    const { waiting, parked } = await new Journal({ store, clock, most: () => 0 }).counts();
    if (waiting > 0)
      return [warn(`${waiting} wait for Redis to be back`, 'They are done by themselves then: reeve journal')];
    return parked > 0
      ? [warn(`${parked} of what was asked for while Redis was away were refused`, 'reeve journal --state parked')]
      : [ok('nothing waits for Redis')];
  },
});
const SOON_MS = 7 * 86_400_000;

/** For the command line, when something cannot be asked because it is down. */
export const unreachable = (name: string, says: string, fix: string): Check => ({
  name,
  run: async () => [fail(says, fix)],
});
