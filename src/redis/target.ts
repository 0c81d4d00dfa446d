import { readFileSync } from 'node:fs';
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { ReeveError, reason } from '../errors.ts';

/** Where Redis is and how to log in. `address` is for people: it never holds a password. */
export type RedisTarget = Standalone | ClusterTarget;
interface Standalone {
  readonly kind: 'standalone';
  readonly address: string;
  readonly options: RedisOptions;
}
interface ClusterTarget {
  readonly kind: 'cluster';
  readonly address: string;
  readonly nodes: ClusterNode[];
  readonly options: ClusterOptions;
}

export interface TargetSettings {
  readonly url: string;
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  readonly sentinelName: string;
  readonly sentinelPassword?: string | undefined;
  readonly tls: {
    readonly caFile?: string | undefined;
    readonly certFile?: string | undefined;
    readonly keyFile?: string | undefined;
    readonly verify: boolean;
    readonly serverName?: string | undefined;
  };
}

/** Several hosts may stand where a URL has one, which no URL parser takes: they are cut out first. */
const PARTS =
  /^(?<scheme>redis|rediss|unix):\/\/(?:(?<login>[^@/]*)@)?(?<hosts>[^/?]*)(?<rest>[^?]*)(?:\?(?<query>.*))?$/;

export function redisTarget(settings: TargetSettings): RedisTarget {
  const { scheme, login = '', hosts = '', rest = '', query = '' } = PARTS.exec(settings.url)?.groups ?? {};
  if (!scheme) throw unusable('it must look like redis://user:password@host:port/0');
  const credentials = loginOf(login);
  if (scheme === 'unix') {
    const path = `${hosts}${rest}`;
    const db = databaseOf(new URLSearchParams(query).get('db') ?? '');
    return { kind: 'standalone', address: `unix:${path}`, options: { ...credentials, db, path } };
  }
  // The rest of a password that nobody encoded would be taken for a host, and shown.
  if (`${hosts}${rest}${query}`.includes('@')) throw unencoded();
  const nodes = hosts.split(',').map(hostAndPort);
  const address = `${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
  const tls = scheme === 'rediss' ? tlsOptions(settings.tls) : undefined;
  const common = { ...credentials, db: databaseOf(rest.slice(1)), ...(tls && { tls }) };
  switch (settings.mode) {
    case 'cluster':
      if (common.db !== 0) throw unusable('a cluster has only database 0');
      return { kind: 'cluster', address: `cluster ${address}`, nodes, options: { redisOptions: common } };
    case 'sentinel':
      return {
        kind: 'standalone',
        address: `${settings.sentinelName} at sentinels ${address}`,
        options: {
          ...common,
          sentinels: nodes,
          name: settings.sentinelName,
          failoverDetector: true,
          ...(settings.sentinelPassword && { sentinelPassword: settings.sentinelPassword }),
          ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        },
      };
    case 'standalone': {
      const [first, ...more] = nodes;
      if (!first || more.length > 0) throw unusable('several hosts need redis.mode sentinel or cluster');
      return { kind: 'standalone', address, options: { ...common, ...first } };
    }
  }
}

function loginOf(login: string): { username?: string; password?: string } {
  const colon = login.indexOf(':');
  const [user, password] = colon < 0 ? [login, ''] : [login.slice(0, colon), login.slice(colon + 1)];
  return { ...(user && { username: decoded(user) }), ...(password && { password: decoded(password) }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unencoded();
  }
}

/** IPv6 addresses stand in brackets: [::1]:6379. */
function hostAndPort(text: string): { host: string; port: number } {
  const {
    v6,
    name,
    port = '6379',
  } = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]+))(?::(?<port>\d+))?$/.exec(text)?.groups ?? {};
  const host = v6 ?? name;
  if (!host || Number(port) > 65535) throw unusable(`${text || 'an empty text'} is not a host and port`);
  return { host, port: Number(port) };
}

function databaseOf(text: string): number {
  if (!/^\d{0,5}$/.test(text)) throw unusable(`${text} is not a database number`);
  return Number(text || 0);
}

function tlsOptions({ caFile, certFile, keyFile, verify, serverName }: TargetSettings['tls']) {
  return {
    ...(caFile && { ca: pem('redis.tls.caFile', caFile) }),
    ...(certFile && { cert: pem('redis.tls.certFile', certFile) }),
    ...(keyFile && { key: pem('redis.tls.keyFile', keyFile) }),
    ...(serverName && { servername: serverName }),
    rejectUnauthorized: verify,
  };
}

function pem(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ReeveError('CONFIG_INVALID', { problems: `  ${setting}: ${reason(error)}` }, { cause: error });
  }
}

const unusable = (problem: string) => new ReeveError('CONFIG_INVALID', { problems: `  redis.url: ${problem}` });
const unencoded = () => unusable('/ ? # @ and % in the password must be percent-encoded');
