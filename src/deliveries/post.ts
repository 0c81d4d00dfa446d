import { lookup as lookUp } from 'node:dns';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { reason } from '../errors.ts';
import { isPrivateAddress } from './private-address.ts';

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  /** Whether the receiver may be on this machine or in a private network. */
  readonly allowsPrivate: boolean;
}

/** What became of it. A redirect is an answer like any other: nothing is sent on to where it points. */
export type Answer =
  | { readonly outcome: 'accepted'; readonly status: number }
  | { readonly outcome: 'refused'; readonly status: number; readonly says: string; readonly retryAfterMs?: number }
  | { readonly outcome: 'failed'; readonly says: string };

/** Enough to see what is wrong; the rest is not read. */
const MOST_BYTES = 500;

/** Sends one text. Never throws: whatever goes wrong is an answer, without the address or anything secret in it. */
export async function post(what: Post, signal?: AbortSignal): Promise<Answer> {
  const over = AbortSignal.any([AbortSignal.timeout(what.timeoutMs), ...(signal ? [signal] : [])]);
  try {
    const response = await send(what, over);
    const status = response.statusCode ?? 0;
    const says = await beginningOf(response);
    if (status >= 200 && status < 300) return { outcome: 'accepted', status };
    const after = Number(response.headers['retry-after']);
    return { outcome: 'refused', status, says, ...(after > 0 && { retryAfterMs: after * 1000 }) };
  } catch (error) {
    const isLate = over.aborted && !signal?.aborted;
    return { outcome: 'failed', says: isLate ? `no answer within ${what.timeoutMs / 1000} s` : problemOf(error) };
  }
}

function send({ url, headers, body, allowsPrivate }: Post, signal: AbortSignal): Promise<IncomingMessage> {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const refuse = (address: string) => refusal(address, protocol, allowsPrivate);
  const refused = isIP(host) === 0 ? undefined : refuse(host);
  if (refused) return Promise.reject(refused);
  return new Promise((resolve, reject) => {
    const request = (protocol === 'https:' ? requestTls : requestPlain)(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'reeve', ...headers },
      // The address that is looked up is the one that is connected to: none can change in between.
      lookup: guardedLookup(refuse),
      agent: false,
      signal,
    });
    request.once('response', resolve);
    request.once('error', reject);
    request.end(body);
  });
}

const guardedLookup =
  (refuse: (address: string) => Error | undefined): LookupFunction =>
  (hostname, options, done) => {
    lookUp(hostname, { ...options, all: true }, (error, found) => {
      if (error) return done(error, []);
      const refused = found.map(({ address }) => refuse(address)).find((one) => one !== undefined);
      if (refused) return done(refused, []);
      const [first] = found;
      if (options.all) return done(null, found);
      return first ? done(null, first.address, first.family) : done(new Error('it has no address'), []);
    });
  };

/** A message on the open internet goes encrypted or not at all; one to the inside only where that is wanted. */
function refusal(address: string, protocol: string, allowsPrivate: boolean): Error | undefined {
  const isPrivate = isPrivateAddress(address);
  if (isPrivate && !allowsPrivate) return new Refusal('it is on this machine or in a private network');
  if (!isPrivate && protocol !== 'https:') return new Refusal('it is not https');
  return undefined;
}

class Refusal extends Error {}

async function beginningOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length >= MOST_BYTES) break;
  }
  response.destroy();
  return printable(text.slice(0, MOST_BYTES));
}

/** It ends up in logs and on screens. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();

/** A code rather than a sentence: those of the system have the address in them. */
function problemOf(error: unknown): string {
  if (error instanceof Refusal) return `not sent: ${error.message}`;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return WORDS[code] ?? (code === '' ? printable(reason(error)) : code);
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection broke',
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name cannot be looked up',
  EHOSTUNREACH: 'its host cannot be reached',
  ETIMEDOUT: 'its host does not answer',
  ABORT_ERR: 'the daemon stops',
};
