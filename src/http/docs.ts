import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Operation } from '../operations/operation.ts';
import { openApi } from './openapi.ts';
import { noSuchRoute } from './problem.ts';
import { API_ROOT } from './router.ts';

interface DocsOptions {
  readonly operations: readonly Operation[];
  readonly version: string;
}

/** The OpenAPI document, and pages made of it for people. Both are made when first asked for, not at the start. */
export function registerDocs(app: FastifyInstance, { operations, version }: DocsOptions): void {
  let document: Record<string, unknown> | undefined;
  let pages: Promise<FastifyInstance> | undefined;
  const made = () => (document ??= openApi(operations, version));
  const show = async (request: FastifyRequest, reply: FastifyReply) => {
    pages ??= docPages(made());
    const server = await pages;
    for (const [name, value] of Object.entries(reply.getHeaders())) if (value) reply.raw.setHeader(name, value);
    reply.hijack();
    server.routing(request.raw, reply.raw);
  };
  app.get(`${API_ROOT}/openapi.json`, async () => made());
  app.get('/', async (_request, reply) => reply.redirect('/docs'));
  app.get('/docs', show);
  app.get('/docs/*', show);
}

/**
 * The pages bring routes, files and plugins along that few daemons are ever asked for: some 11 MiB of memory. So they
 * are a small server of their own, made on demand, which never listens: requests are handed to it.
 */
async function docPages(document: Record<string, unknown>): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ]);
  const app = Fastify();
  app.setNotFoundHandler(noSuchRoute);
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { deepLinking: true } });
  await app.ready();
  return app;
}
