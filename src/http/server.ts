import type { IncomingMessage, ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import { type Clock, withDeadline } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Caller, Operation } from '../operations/operation.ts';
import type { Rooms } from '../operations/rooms.ts';
import { type Service, service } from '../service.ts';
import { callerOf, isLoopbackHost, refuseForeignPages } from './auth.ts';
import { registerDocs } from './docs.ts';
import { registerWebhook, type WebhookHandler } from './github.ts';
import { noSuchRoute, refuseBroken, requestError, sendProblem } from './problem.ts';
import { registerOperations } from './router.ts';

export interface HttpOptions {
  readonly host: string;
  readonly port: number;
  readonly bodyLimitBytes: number;
  /** The same for a body that brings a file. */
  readonly fileBodyBytes: number;
  /** How long a request may take to arrive, from its first byte to its last. */
  readonly requestMs: number;
  readonly drainMs: number;
  readonly version: string;
  readonly operations: readonly Operation[];
  readonly rooms: Rooms;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when stopping begins, before connections close. */
  readonly onDrain: () => void;
  readonly metrics: HttpMetrics;
  /** Doors of other protocols that live on this server: the path, and what answers there. */
  readonly mounts: Readonly<Record<string, Mount>>;
  /** Deliveries of GitHub, and how large one may be. */
  readonly webhook: { readonly handle: WebhookHandler; readonly mostBytes: number };
}

export type Mount = (
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
  caller: Caller,
) => Promise<void>;

export interface HttpMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  observe(route: string, method: string, status: number, seconds: number): void;
}

export interface HttpServer extends Service {
  /** http://127.0.0.1:7420, once it listens. */
  readonly url: string;
}

/** The HTTP door. It stops in three steps: not ready any more, open requests finish, what is left is cut off. */
export function httpServer(options: HttpOptions): HttpServer {
  let url = '';
  const life = service('http', async () => {
    const { host, port, drainMs, clock, log, onDrain } = options;
    // Asked once before listening also for this machine alone, so that the first request finds it known.
    const needsTokens = await options.rooms.doorkeeper.needsTokens();
    if (!isLoopbackHost(host) && !needsTokens) throw new ReeveError('INSECURE_BIND', { host });
    const draining = new AbortController();
    const arrivals: Arrivals = { count: 0 };
    const app = build(options, draining.signal, arrivals);
    try {
      url = await app.listen({ host, port });
    } catch (error) {
      await app.close();
      throw (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
        ? new ReeveError('PORT_TAKEN', { host, port }, { cause: error })
        : error;
    }
    log.debug('listening', { url });
    return async () => {
      onDrain();
      draining.abort();
      if (await hasCallers(app)) await untilQuiet(arrivals, clock, drainMs);
      const late = () => new ReeveError('SHUTTING_DOWN');
      await withDeadline(clock, drainMs, app.close(), late).catch(() => {
        log.warn('requests were cut off: they took longer than the drain time', { drainMs });
        app.server.closeAllConnections();
      });
    };
  });
  return {
    ...life,
    get url() {
      return url;
    },
  };
}

/**
 * Closing at once would reset requests that are on their way, on connections kept open and on new ones. Until none has come
 * for a while they are still taken, turned away with `connection: close`, and so go elsewhere by themselves. Several looks,
 * because a daemon under load may be late to notice those that wait at its door.
 */
async function untilQuiet(arrivals: Arrivals, clock: Clock, mostMs: number): Promise<void> {
  const deadline = clock.now() + Math.min(mostMs, MOST_LINGER_MS);
  for (let quiet = 0, seen = arrivals.count; quiet < QUIET_LOOKS && clock.now() < deadline; seen = arrivals.count) {
    await clock.sleep(LOOK_MS);
    quiet = arrivals.count === seen ? quiet + 1 : 0;
  }
}
const LOOK_MS = 25;
const QUIET_LOOKS = 4;
const MOST_LINGER_MS = 3_000;

/** How many requests have come. */
interface Arrivals {
  count: number;
}

const hasCallers = (app: FastifyInstance): Promise<boolean> =>
  new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count > 0)));

function build(options: HttpOptions, draining: AbortSignal, arrivals: Arrivals): FastifyInstance {
  const { bodyLimitBytes, requestMs, log, metrics, host, mounts } = options;
  const { doorkeeper } = options.rooms;
  const app = Fastify({
    bodyLimit: bodyLimitBytes,
    // Whoever sends byte by byte, or stops half-way, is cut off. It ends with the last byte of the request: what is answered
    // slowly, such as a stream of events or a wait for a lock, is not meant.
    requestTimeout: requestMs,
    http: { headersTimeout: requestMs, connectionsCheckingInterval: Math.min(Math.ceil(requestMs / 2), MOST_LATE_MS) },
    clientErrorHandler: (error, socket) => refuseBroken(error, socket, requestMs),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // What is refused before any route is found, such as a path that is not well encoded.
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, requestError(error, bodyLimitBytes)),
  });

  // Many clients say that they send JSON where they send nothing: that is no broken JSON.
  const readJson = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void readJson(request, body as string, done);
  });
  app.addHook('onRequest', async (request, reply) => {
    arrivals.count += 1;
    refuseForeignPages(request, host, doorkeeper.isClosed);
    void reply.header('x-content-type-options', 'nosniff').header('cache-control', 'no-store');
    if (draining.aborted) {
      void reply.header('connection', 'close');
      throw new ReeveError('SHUTTING_DOWN', { retryAfterSeconds: 2 });
    }
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown';
    metrics.observe(route, request.method, reply.statusCode, reply.elapsedTime / 1000);
    log.debug('request answered', {
      method: request.method,
      route,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    });
  });
  app.setErrorHandler((thrown, request, reply) => {
    const error = requestError(thrown, request.routeOptions.bodyLimit ?? bodyLimitBytes);
    if (error.row.status >= 500 && error.row.actor === 'human') {
      log.error('request failed', {
        method: request.method,
        url: request.url,
        code: error.code,
        cause: causeOf(error),
      });
    }
    return sendProblem(reply, error);
  });
  app.setNotFoundHandler(noSuchRoute);

  registerOperations(app, { ...options, draining });
  registerDocs(app, options);
  registerWebhook(app, options.webhook.handle, options.webhook.mostBytes);
  app.get('/metrics', async (request, reply) => {
    const { id, access } = await callerOf(request, doorkeeper);
    if (!access.has('read')) throw new ReeveError('DENIED', { caller: id, why: 'metrics need the right "read"' });
    return reply.type(metrics.contentType).send(await metrics.text());
  });
  for (const [path, mount] of Object.entries(mounts)) {
    app.all(path, async (request, reply) => {
      const caller = await callerOf(request, doorkeeper);
      reply.hijack();
      await mount(request.raw, reply.raw, request.body, caller);
    });
  }
  return app;
}

/** How much later than due a slow request may be noticed. */
const MOST_LATE_MS = 5_000;

function causeOf(error: ReeveError): string {
  return error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : error.message;
}
