import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asReeveError, ReeveError, toProblem } from '../errors.ts';

/** What Fastify itself refuses, in our words. */
export function requestError(error: unknown, limitBytes: number): ReeveError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new ReeveError('BODY_TOO_LARGE', { limitBytes }, { cause: error });
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new ReeveError('UNSUPPORTED_MEDIA_TYPE', {}, { cause: error });
  if (!(error instanceof ReeveError) && error instanceof Error && status >= 400 && status < 500) {
    const hint = 'Send JSON with content-type: application/json.';
    return new ReeveError('USAGE', { problem: error.message, hint }, { cause: error });
  }
  return asReeveError(error);
}

/** Answers with an RFC 9457 problem. Every refusal of the HTTP door goes through here. */
export function sendProblem(reply: FastifyReply, error: ReeveError): FastifyReply {
  const problem = toProblem(error);
  // What clears by itself is worth asking for again, soon.
  const usual = problem.status === 503 && problem.actor === 'retry' ? RETRY_SECONDS : undefined;
  const after = problem.retry_after_seconds ?? usual;
  if (after !== undefined) void reply.header('retry-after', Math.ceil(after));
  return reply.code(problem.status).type('application/problem+json').send(problem);
}

const RETRY_SECONDS = 5;

/** What never became a request: it came too slowly, or is not HTTP. There is no reply to write to, only the connection. */
export function refuseBroken(error: NodeJS.ErrnoException, socket: Socket, requestMs: number): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const problem = toProblem(brokenError(error, requestMs));
  const body = JSON.stringify(problem);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  // At once: whoever does not send may not read either.
  socket.destroy();
}

function brokenError(error: NodeJS.ErrnoException, requestMs: number): ReeveError {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ReeveError('REQUEST_TOO_SLOW', { limitSeconds: requestMs / 1000 }, { cause: error });
  const isLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const problem = isLarge ? 'the headers are larger than 16 KiB' : 'this is not an HTTP request';
  return new ReeveError('USAGE', { problem, hint: 'Speak HTTP/1.1.' }, { cause: error });
}

export const noSuchRoute = ({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendProblem(reply, new ReeveError('NO_SUCH_ROUTE', { method, path: url.split('?')[0] }));
