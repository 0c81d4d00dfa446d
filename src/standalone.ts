import type { Clock } from './clock.ts';
import { holdDataDir } from './data-dir.ts';
import type { Logger } from './log.ts';
import type { Connection } from './redis/connection.ts';
import { createRedisMedium } from './redis-medium.ts';
import { group, service } from './service.ts';
import type { Config } from './settings.ts';

export interface StandaloneOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
}

/**
 * Does a piece of work on the Redis of the settings without a daemon: the one that is named, or else the private one of
 * the data directory, which is started for as long as the work takes.
 */
export async function withRedis<T>(
  options: StandaloneOptions,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { config, clock, log, version } = options;
  const { connection, isEmbedded, members } = createRedisMedium(options);
  const hold = service('data directory', async () => {
    const taken = await holdDataDir({ dir: config.dataDir, clock, log, describe: { version } });
    return () => taken.release();
  });
  const life = group('reeve', isEmbedded ? [hold, ...members] : members);
  await life.start();
  try {
    return await work(connection);
  } finally {
    await life.stop();
  }
}
