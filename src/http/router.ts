import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { fromText, type TextSchema } from '../coerce.ts';
import { ReeveError } from '../errors.ts';
import { type Context, follow, invoke, isJournalled, type Operation } from '../operations/operation.ts';
import type { Rooms } from '../operations/rooms.ts';
import { anyoneAt, callerOf, cookieOf } from './auth.ts';
import { streamEvents } from './sse.ts';

export const API_ROOT = '/api/v1';

interface RouterOptions {
  readonly operations: readonly Operation[];
  readonly rooms: Rooms;
  readonly clock: Clock;
  readonly draining: AbortSignal;
  /** How long a body may be that brings a file. */
  readonly fileBodyBytes: number;
}

/** '/tasks/{id}' is served at /api/v1/tasks/:id, '//readyz' at /readyz. */
export const routePath = ({ http: { path } }: Operation): string =>
  path.startsWith('//') ? path.slice(1) : `${API_ROOT}${path}`;

/** One route for each operation. The door only translates: text to values, outcomes to statuses. */
export function registerOperations(app: FastifyInstance, options: RouterOptions): void {
  for (const operation of options.operations) {
    const properties = inputProperties(operation);
    app.route({
      method: operation.http.method,
      url: routePath(operation).replace(/\{(\w+)\}/g, ':$1'),
      ...(operation.http.isLarge && { bodyLimit: options.fileBodyBytes }),
      handler: async (request, reply) => {
        const { rooms } = options;
        const context: Context = {
          rooms,
          operations: options.operations,
          caller: operation.access === 'open' ? anyoneAt(request) : await callerOf(request, rooms.doorkeeper),
          cookie: cookieOf(request, reply),
          signal: AbortSignal.any([options.draining, goneSignal(reply)]),
        };
        const input = { ...inputOf(request, properties), ...headersOf(request, operation) };
        if (operation.follow && request.headers.accept?.includes('text/event-stream')) {
          const since = request.headers['last-event-id'];
          const events = follow(operation, context, { ...input, ...(since && { since }) });
          if (events) return streamEvents(reply, events, options.clock, context.signal);
        }
        const output = await invoke(operation, context, input);
        const status = isJournalled(output) ? 202 : (operation.http.status?.(output as never) ?? 200);
        return reply.code(status).send(status === 204 ? undefined : output);
      },
    });
  }
}

type Properties = Readonly<Record<string, TextSchema>>;

function inputProperties({ input }: Operation): Properties {
  return (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }).properties ?? {}) as Properties;
}

/** Path and query hold text, which is read as what the input wants; a body holds values already. */
function inputOf({ query, params, body = {} }: FastifyRequest, properties: Properties): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ReeveError('USAGE', {
      problem: 'the body is not a JSON object',
      hint: 'Send an object: {"name": "value"}',
    });
  }
  const texts = { ...(query as object), ...(params as object) } as Record<string, string | string[]>;
  const read = Object.entries(texts).map(([name, text]) => [name, fromText(properties[name] ?? {}, String(text))]);
  return { ...body, ...Object.fromEntries(read) };
}

function headersOf({ headers }: FastifyRequest, { http }: Operation): Record<string, unknown> {
  const given = Object.entries(http.headers ?? {}).filter(([header]) => headers[header] !== undefined);
  return Object.fromEntries(given.map(([header, name]) => [name, headers[header]]));
}

/** Aborted when the caller hangs up before the answer is complete. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
