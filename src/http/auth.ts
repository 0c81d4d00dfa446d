import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReeveError } from '../errors.ts';
import { ANONYMOUS, type Caller, type Knock } from '../identity/caller.ts';
import type { Doorkeeper } from '../identity/doorkeeper.ts';
import type { Cookie } from '../operations/operation.ts';

const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Addresses that only this machine reaches. */
export const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);

/**
 * Holds off browsers that a foreign page sends here: a page that resolves its own name to 127.0.0.1 (DNS rebinding) sends
 * a foreign Host, and a page of another site sends its Origin.
 */
export function refuseForeignPages(request: FastifyRequest, listenHost: string, needsTokens: boolean): void {
  const host = hostName(request.headers.host);
  // Once every call must say who it is, a foreign name gains nothing: no browser sends it our cookie.
  if (!needsTokens && !LOCAL_NAMES.has(host) && host !== listenHost) {
    throw new ReeveError('DENIED', { caller: 'a page in a browser', why: `the Host header says ${host || 'nothing'}` });
  }
  const { origin } = request.headers;
  // The port counts, too: what another program on this machine serves is another site.
  if (origin !== undefined && origin.replace(/^[a-z]+:\/\//, '') !== request.headers.host?.toLowerCase()) {
    throw new ReeveError('DENIED', { caller: `a page of ${origin}`, why: 'another site may not call this daemon' });
  }
}

export const SESSION_COOKIE = 'reeve_session';

/** What the doorkeeper is told of a request. The address is the connection's own. */
const knockOf = (request: FastifyRequest): Knock => ({
  authorization: request.headers.authorization,
  session: sessionOf(request),
  ip: request.ip,
  userAgent: request.headers['user-agent'],
});

/** Who is calling, or UNAUTHENTICATED. */
export async function callerOf(request: FastifyRequest, doorkeeper: Doorkeeper): Promise<Caller> {
  return { ...(await doorkeeper.admit(knockOf(request))), door: 'http' };
}

/** For what anyone may ask. Nobody is asked who it is, so that it is answered even when nobody could tell. */
export function anyoneAt({ ip, headers }: FastifyRequest): Caller {
  return { ...ANONYMOUS, door: 'http', ip, userAgent: headers['user-agent'] ?? '' };
}

/**
 * The secret of a session, where scripts of a page cannot read it and other sites cannot send it. Behind a proxy that speaks TLS
 * it goes over TLS only.
 */
export function cookieOf(request: FastifyRequest, reply: FastifyReply): Cookie {
  const isSecure = request.headers['x-forwarded-proto'] === 'https';
  const set = (secret: string, seconds: number) =>
    void reply.header(
      'set-cookie',
      `${SESSION_COOKIE}=${secret}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
    );
  return { secret: sessionOf(request), keep: set, drop: () => set('', 0) };
}

function sessionOf({ headers: { cookie = '' } }: FastifyRequest): string | undefined {
  const pairs = cookie.split(/; */).map((pair) => pair.split('='));
  return pairs.find(([name]) => name === SESSION_COOKIE)?.[1] || undefined;
}

const hostName = (host: string | undefined): string => (host ?? '').replace(/:\d+$/, '').toLowerCase();
