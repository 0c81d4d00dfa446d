import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';

/** Sees to it that one daemon at a time does what the journal holds, so that the order is kept. */
export interface ReplayLock {
  take(): Promise<boolean>;
  keep(): Promise<void>;
  release(): Promise<void>;
}

const JOB = 'journal-replay';
/** After so long another daemon may take it for dead. */
const HOLD_MS = 60_000;

/** `worker` is one name for each life of a daemon. */
export function replayLock(connection: Pick<Connection, 'commands'>, keys: Keyspace, worker: string): ReplayLock {
  const lock = keys.jobLock(JOB);
  return {
    take: async () => (await connection.commands.set(lock, worker, 'PX', HOLD_MS, 'NX')) === 'OK',
    keep: async () => void (await connection.commands.set(lock, worker, 'PX', HOLD_MS)),
    release: async () => {
      if ((await connection.commands.get(lock)) === worker) await connection.commands.del(lock);
    },
  };
}
