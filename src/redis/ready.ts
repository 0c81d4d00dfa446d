import { Redis } from 'ioredis';
import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import { connectionOptions, type RedisAddress } from './address.ts';
import type { ServerProcess } from './server-process.ts';

export interface ReadyOptions {
  readonly clock: Clock;
  /** How long a server may be silent. One that says it is loading may take as long as it needs. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Resolves when this very process answers a PING with login; rejects when it ends, stays silent or is aborted. */
export async function untilReady(child: ServerProcess, address: RedisAddress, options: ReadyOptions): Promise<void> {
  const { clock, patienceMs, signal } = options;
  let ended: string | undefined;
  void child.exited.then((how) => {
    ended = how;
  });
  let heardAt = clock.now();
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 1.5, 250)) {
    const answer = await ask(child, address, clock);
    signal.throwIfAborted();
    if (ended) throw new Error(`it ended at once: ${ended}`);
    if (answer === 'ready') return;
    if (answer === 'loading') heardAt = clock.now();
    else if (clock.now() - heardAt > patienceMs)
      throw new Error(`no answer in ${patienceMs / 1000} s: ${answer.problem}`);
    await clock.sleep(pauseMs, signal);
  }
}

const ASK_MS = 3_000;

type Answer = 'ready' | 'loading' | { readonly problem: string };

/** What listens there may never speak: the question is dropped after a while, or when the child is gone. */
async function ask(child: ServerProcess, address: RedisAddress, clock: Clock): Promise<Answer> {
  const client = new Redis({
    ...connectionOptions(address),
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    disconnectTimeout: 50,
  });
  const over = new AbortController();
  void Promise.race([child.exited, clock.sleep(ASK_MS, over.signal)]).then(() => client.disconnect());
  // The failed command carries the same error; without a listener the client would print it.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.ping();
    const answering = /^process_id:(\d+)/m.exec(await client.info('server'))?.[1];
    return answering === String(child.pid) ? 'ready' : { problem: `process ${answering} answers at its address` };
  } catch (error) {
    // The first word of a Redis error is its code.
    return reason(error).startsWith('LOADING ') ? 'loading' : { problem: reason(error) };
  } finally {
    over.abort();
    client.disconnect();
  }
}
