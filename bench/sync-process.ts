import type { RedisOptions } from 'ioredis';
import { systemClock } from '../src/clock.ts';
import { githubClient } from '../src/sync/github-client.ts';
import { githubSource } from '../src/sync/github-source.ts';
import { aSyncRoom, type SyncRoom } from '../test/support/sync.ts';

/** Where to sync from and to. */
export interface SyncPlace {
  readonly redis: RedisOptions;
  readonly url: string;
  readonly token: string;
  readonly name: string;
}

/** How one sync went in a process that does nothing else. */
export interface SyncFigures {
  readonly outcome: string;
  readonly problem?: unknown;
  readonly ms: number;
  /** Longest stretch of work on the event loop's thread, in its own CPU time: other programs on the machine do not count. */
  readonly loopMs: number;
  readonly rssMb: number;
}

/** A sync in a process of its own, as in a daemon: its memory and its event loop are nobody else's. */
let room: SyncRoom | undefined;
process.on('message', (order: { open?: SyncPlace; run?: true }) => {
  void (async () => {
    if (order.open) {
      const { redis, url, token, name } = order.open;
      const client = githubClient({ apiUrl: url, login: { token }, source: name, fetch, clock: systemClock });
      room = await aSyncRoom({ options: redis }, { source: githubSource({ client, repo: name, address: name }) });
      process.send!({});
    }
    if (order.run && room) process.send!(await measured(room));
  })();
});
process.on('disconnect', () => void room?.[Symbol.asyncDispose]().then(() => process.exit(0)));
process.send!({});

async function measured(into: SyncRoom): Promise<SyncFigures> {
  const over = new AbortController();
  let rss = 0;
  let longest = 0;
  const watching = (async () => {
    while (!over.signal.aborted) {
      const before = ownTime();
      await systemClock.sleep(2, over.signal);
      longest = Math.max(longest, ownTime() - before);
      rss = Math.max(rss, process.memoryUsage.rss());
    }
  })();
  const began = performance.now();
  const { outcome, problem } = await into.run();
  const ms = performance.now() - began;
  over.abort();
  await watching;
  return { outcome, problem, ms, loopMs: longest, rssMb: rss / 2 ** 20 };
}

const ownTime = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};
