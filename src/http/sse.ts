import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../clock.ts';
import type { Followed } from '../operations/operation.ts';

/** Proxies close what looks idle; a comment now and then keeps the stream open and shows a dead client. */
const KEEP_ALIVE_MS = 15_000;

/** Sends what is followed as server-sent events until the caller hangs up or the daemon drains. */
export async function streamEvents(
  reply: FastifyReply,
  events: AsyncIterable<Followed>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  reply.hijack();
  const out = reply.raw;
  out.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
  const send = async (text: string) => {
    // A slow reader slows the source, rather than filling memory.
    if (!out.write(text) && !signal.aborted) await once(out, 'drain', { signal }).catch(() => {});
  };
  await send('retry: 2000\n\n');
  const keepAlive = (async () => {
    while (!signal.aborted) {
      await clock.sleep(KEEP_ALIVE_MS, signal);
      if (!signal.aborted) await send(': still here\n\n');
    }
  })();
  try {
    for await (const { cursor, kind, item } of events) {
      if (signal.aborted) break;
      await send(`id: ${cursor}\nevent: ${oneLine(kind)}\ndata: ${JSON.stringify(item)}\n\n`);
    }
  } finally {
    out.end();
    await keepAlive;
  }
}

/** A line break would end the field, and what follows it would be read as another. Raw clients name events as they like. */
const oneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ');
