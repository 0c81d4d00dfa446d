import type { FastifyRequest } from 'fastify';
import { ReeveError } from '../errors.ts';
import { ACCESS, type Access, type Caller } from '../operations/operation.ts';

const EVERYTHING: ReadonlySet<Access> = new Set(Object.keys(ACCESS) as Access[]);
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;
const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Addresses that only this machine reaches. */
export const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);

/**
 * Holds off browsers that a foreign page sends here: a page that resolves its own name to 127.0.0.1 (DNS rebinding) sends
 * a foreign Host, and a page of another site sends its Origin.
 */
export function refuseForeignPages(request: FastifyRequest, listenHost: string): void {
  const host = hostName(request.headers.host);
  if (!LOCAL_NAMES.has(host) && host !== listenHost) {
    throw new ReeveError('DENIED', { caller: 'a page in a browser', why: `the Host header says ${host || 'nothing'}` });
  }
  const { origin } = request.headers;
  // The port counts, too: what another program on this machine serves is another site.
  if (origin !== undefined && origin.replace(/^[a-z]+:\/\//, '') !== request.headers.host?.toLowerCase()) {
    throw new ReeveError('DENIED', { caller: `a page of ${origin}`, why: 'another site may not call this daemon' });
  }
}

/** Who is calling. No API token exists yet, so a caller on this machine is the admin `local`, and there is no other. */
export function callerOf(request: FastifyRequest): Caller {
  if (!LOOPBACK.test(request.ip)) {
    throw new ReeveError('UNAUTHENTICATED', { why: `${request.ip} is not this machine, and no token exists` });
  }
  return { id: 'local', access: EVERYTHING };
}

const hostName = (host: string | undefined): string => (host ?? '').replace(/:\d+$/, '').toLowerCase();
