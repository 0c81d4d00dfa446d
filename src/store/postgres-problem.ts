import { reason } from '../errors.ts';

/** What a failure of a PostgreSQL server or the way to it means, in words; undefined if it is about the statement alone. */
export function postgresProblem(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = 'code' in thrown ? String(thrown.code) : '';
  const words = WORDS.find(([pattern]) => pattern.test(code))?.[1];
  if (words) return `${words} (${reason(thrown)})`;
  if (code !== '') return undefined;
  if (LATE.test(thrown.message)) return `it did not answer in time (${thrown.message})`;
  return LOST.test(thrown.message) ? `the connection is gone (${thrown.message})` : undefined;
}

/** Codes of Node (ECONN…) and SQLSTATEs, which are five characters with the class in the first two. */
const WORDS: readonly (readonly [code: RegExp, words: string])[] = [
  [/^E(CONNREFUSED|NOENT|HOSTUNREACH|NETUNREACH|TIMEDOUT)$/, 'no server answers there'],
  [/^E(NOTFOUND|AI_AGAIN)$/, 'its host name is not known'],
  [/^(ECONN|EPIPE|08)/, 'the connection is gone'],
  [/^28/, 'it refused the login'],
  [/^3D000$/, 'the server has no such database'],
  [/^57P0[123]$/, 'the server is starting or shutting down'],
  [/^53100$/, 'its disk is full'],
  [/^53300$/, 'it takes no more connections'],
  [/^53/, 'the server is out of means'],
  [/^25006$/, 'it is read-only'],
  [/^42501$/, 'its user lacks a permission'],
  [/^55P03$/, 'another program keeps it locked'],
  [/^(58|XX00[12]$)/, 'its disk fails'],
];

/** The driver gives these no code. */
const LATE = /^(Connection terminated due to connection timeout|timeout exceeded|Query read timeout)/;
const LOST = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;
