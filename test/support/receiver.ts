import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A program that webhooks lead to, on loopback, which answers as the test says. */
export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** From now on it answers so. */
  answer(status: number, headers?: Readonly<Record<string, string>>, text?: string): void;
  /** From now on it does not answer at all. */
  hang(): void;
  close(): Promise<void>;
}

export async function aReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let reply: { status: number; headers: Readonly<Record<string, string>>; text: string } | undefined = {
    status: 200,
    headers: {},
    text: '',
  };
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.once('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) });
      if (reply) response.writeHead(reply.status, reply.headers).end(reply.text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  onTestFinished(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer: (status, headers = {}, text = '') => {
      reply = { status, headers, text };
    },
    hang: () => {
      reply = undefined;
    },
    close,
  };
}
