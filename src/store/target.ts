import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ReeveError } from '../errors.ts';

/** Which database, by dialect. `address` is for people: it never holds a password. */
export type StoreTarget = SqliteTarget | PostgresTarget;
export interface SqliteTarget {
  readonly dialect: 'sqlite';
  readonly address: string;
  readonly path: string;
}
export interface PostgresTarget {
  readonly dialect: 'postgres';
  readonly address: string;
  readonly url: string;
}

/** Reads `postgres://…`, `sqlite:FILE`, `file:FILE` or a plain path. Without a URL: reeve.db in the data directory. */
export function storeTarget(url: string | undefined, dataDir: string): StoreTarget {
  if (url === undefined) return sqliteTarget(resolve(dataDir, 'reeve.db'));
  // Two letters or more: C:\reeve.db is a path.
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      return sqliteTarget(resolve(url));
    case 'postgres':
    case 'postgresql':
      return postgresTarget(url);
    case 'file':
    case 'sqlite':
      return sqliteTarget(pathOf(url, scheme));
    default:
      throw unusable(`${scheme}: is not a database reeve can use; it must be postgres://… or sqlite:FILE`);
  }
}

function sqliteTarget(path: string): SqliteTarget {
  return { dialect: 'sqlite', path, address: `sqlite:${path}` };
}

function pathOf(url: string, scheme: string): string {
  const rest = url.slice(scheme.length + 1);
  if (rest === '' || rest === '//') throw unusable('it names no file');
  if (rest.includes(':memory:')) throw unusable('a database in memory would forget the history; name a file');
  if (scheme === 'file' && rest.startsWith('//')) return fileUrlPath(url);
  return resolve(rest.replace(/^\/\/(?=.)/, ''));
}

function fileUrlPath(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw unusable('a file: URL must look like file:///path/to/reeve.db', cause);
  }
}

/** The URL goes to the driver as it is; here it is only read for its address. */
function postgresTarget(url: string): PostgresTarget {
  const parts = /^\w+:\/\//.test(url) ? parsed(url) : null;
  // Behind an unescaped / ? or # in a password, the rest of it would be taken for a path and shown.
  if (!parts || /@/.test(parts.pathname + parts.search + parts.hash)) {
    throw unusable(
      'it must look like postgres://user:password@host:5432/database, with / ? # @ and % in the password percent-encoded',
    );
  }
  const query = parts.searchParams;
  const user = query.get('user') ?? decoded(parts.username);
  const host = query.get('host') ?? decoded(parts.hostname);
  const port = query.get('port') ?? parts.port;
  const at = `${user && `${user}@`}${host || 'localhost'}${port && `:${port}`}`;
  return { dialect: 'postgres', url, address: `postgres://${at}${decoded(parts.pathname)}` };
}

/** `user@/database?host=/socket/dir` names no host, which no URL parser takes; the driver does. */
const parsed = (url: string): URL | null => URL.parse(url) ?? URL.parse(url.replace('@/', '@localhost/'));

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const unusable = (problem: string, cause?: unknown) =>
  new ReeveError('CONFIG_INVALID', { problems: `  store.url: ${problem}` }, { cause });
