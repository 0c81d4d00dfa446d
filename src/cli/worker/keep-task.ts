import type { Clock } from '../../clock.ts';
import { keepAlive } from '../../coordinator/locks/heartbeat.ts';
import { LEASE_CLASSES } from '../../coordinator/locks/lock.ts';
import { reason } from '../../errors.ts';
import type { KeptLease } from './attempt.ts';
import type { Claimed, WorkClient } from './work-client.ts';

/** A lease begins when the daemon grants it, which is a little before we hear of it. */
const LEASE_LEFT = 0.9;
const BEAT_MS = 10_000;

export interface KeepTaskOptions {
  readonly work: WorkClient;
  readonly clock: Clock;
  readonly say: (task: string, text: string) => void;
}

/** Beats for a claimed task as any holder of a lock does: until it is told to stop, or the lease is really over. */
export function keepTask({ task, lease, ...rest }: Claimed, { work, clock, say }: KeepTaskOptions): KeptLease {
  const leaseMs = LEASE_CLASSES[lease.lease_class].leaseMs * LEASE_LEFT;
  return keepAlive({
    lock: `task:${task.task_id}`,
    lockId: lease.lock_id,
    agent: lease.agent_id,
    leaseMs,
    intervalMs: BEAT_MS,
    clock,
    onTrouble: (error) => say(task.task_id, `no heartbeat: ${reason(error)}`),
    beat: async (stopped) => {
      const told = await work.beat({ task, lease, ...rest }, stopped);
      return told === 'heard' ? { outcome: 'extended', leaseMs } : { outcome: 'lost' };
    },
  });
}
