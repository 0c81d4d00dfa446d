import type { FastifyInstance } from 'fastify';
import type { Operation } from '../operations/operation.ts';
import { openApi } from './openapi.ts';
import { API_ROOT } from './router.ts';

interface DocsOptions {
  readonly operations: readonly Operation[];
  readonly version: string;
}

/** The OpenAPI document, and pages made of it for people. Made when first asked for, not at start. */
export function registerDocs(app: FastifyInstance, { operations, version }: DocsOptions): void {
  let document: Record<string, unknown> | undefined;
  const made = () => (document ??= openApi(operations, version));
  app.get(`${API_ROOT}/openapi.json`, async () => made());
  app.get('/', async (_request, reply) => reply.redirect('/docs'));
  void app.register(async (scope) => {
    const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
      import('@fastify/swagger'),
      import('@fastify/swagger-ui'),
    ]);
    await scope.register(swagger, { mode: 'static', specification: { document: made() as never } });
    await scope.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { deepLinking: true } });
  });
}
