import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Request {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One HTTP request, resolved when the head of the answer is there. Not by fetch, and not by importing node:http, which
 * looks up every name in it and so loads fetch and WebSocket along: either would double the time of a short command.
 */
export function send(url: URL, { body, ...options }: Request): Promise<IncomingMessage> {
  const { request } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    // Each command asks once: a connection kept open would only keep the process waiting.
    request(url, { ...options, agent: false }, resolve)
      .once('error', reject)
      .end(body);
  });
}

/** The body as JSON, or undefined where it is none. */
export async function jsonOf(response: IncomingMessage): Promise<unknown> {
  const body = await text(response);
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

export async function* linesOf(response: IncomingMessage): AsyncIterable<string> {
  let rest = '';
  for await (const part of response.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
