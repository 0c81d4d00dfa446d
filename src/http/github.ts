import type { FastifyInstance } from 'fastify';

/** What answers a delivery; built by whoever knows the sources. */
export type WebhookHandler = (delivery: {
  readonly source?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}) => Promise<{ readonly status: number; readonly says: string; readonly sources: readonly string[] }>;

/**
 * Deliveries of GitHub. Their signature is over the raw bytes, so nothing parses them here; they come from anywhere and
 * are believed for their signature alone, so no caller is looked for.
 */
export function registerWebhook(app: FastifyInstance, handle: WebhookHandler, mostBytes: number): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, body, done) =>
      done(null, body),
    );
    for (const path of ['/webhook/github', '/webhook/github/:source']) {
      scope.post(path, { bodyLimit: mostBytes }, async (request, reply) => {
        const { source } = request.params as { source?: string };
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const { status, ...answer } = await handle({ source, headers: request.headers, body });
        return reply.code(status).send(answer);
      });
    }
  });
}
