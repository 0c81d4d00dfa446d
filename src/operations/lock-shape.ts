import { z } from 'zod';
import { formatLock, LEASE_CLASS_NAMES, LOCK_MODES, type LockView } from '../coordinator/locks/lock.ts';

const holder = z
  .object({
    agent: z.string(),
    lock_id: z.string(),
    mode: z.enum(LOCK_MODES),
    fencing_token: z.int(),
    acquired_at: z.string(),
    expires_at: z.string(),
    purpose: z.string(),
    lease_class: z.enum(LEASE_CLASS_NAMES),
    heartbeats: z.int(),
    state: z.enum(['live', 'grace', 'expired']),
  })
  .meta({ id: 'LockHolder' });

const waiter = z
  .object({
    agent: z.string(),
    lock_id: z.string(),
    mode: z.enum(LOCK_MODES),
    position: z.int(),
    priority: z.number(),
    requested_at: z.string(),
    max_wait_seconds: z.number(),
    alive: z.boolean(),
  })
  .meta({ id: 'LockWaiter' });

export const lockShape = z
  .object({
    lock: z.string(),
    kind: z.enum(['task', 'resource', 'agent']),
    state: z.enum(['held', 'free']),
    mode: z.enum(LOCK_MODES).optional(),
    holder: z.string().optional().describe('Who holds it; of several, the first'),
    purpose: z.string().optional(),
    expires_at: z.string().optional(),
    waiting: z.int(),
    fencing_token: z.int().describe('The highest one given'),
    holders: z.array(holder),
    waiters: z.array(waiter),
    capacity: z
      .object({
        max_tasks: z.int(),
        active_tasks: z.int(),
        queued_tasks: z.int(),
        status: z.enum(['active', 'draining', 'offline']),
        last_heartbeat: z.string(),
      })
      .optional(),
  })
  .meta({ id: 'Lock' });

export function lockAnswer(view: LockView): z.input<typeof lockShape> {
  const holders = view.holders.filter(({ state }) => state !== 'expired');
  const [first] = holders;
  return {
    lock: formatLock(view.lock),
    kind: view.lock.kind,
    state: first ? 'held' : 'free',
    ...(first && {
      mode: first.mode,
      holder: first.agent,
      purpose: first.purpose,
      expires_at: holders
        .map(({ expiresAt }) => expiresAt)
        .toSorted()
        .at(-1),
    }),
    waiting: view.waiters.length,
    fencing_token: view.token,
    holders: holders.map(({ agent, lockId, mode, token, acquiredAt, expiresAt, purpose, leaseClass, ...rest }) => ({
      agent,
      lock_id: lockId,
      mode,
      fencing_token: token,
      acquired_at: acquiredAt,
      expires_at: expiresAt,
      purpose,
      lease_class: leaseClass,
      heartbeats: rest.heartbeats,
      state: rest.state,
    })),
    waiters: view.waiters.map(({ agent, lockId, mode, priority, requestedAt, maxWaitSeconds, alive }, at) => ({
      agent,
      lock_id: lockId,
      mode,
      position: at + 1,
      priority,
      requested_at: requestedAt,
      max_wait_seconds: maxWaitSeconds,
      alive,
    })),
    ...(view.capacity && {
      capacity: {
        max_tasks: view.capacity.maxTasks,
        active_tasks: view.capacity.activeTasks,
        queued_tasks: view.capacity.queuedTasks,
        status: view.capacity.status,
        last_heartbeat: view.capacity.lastHeartbeat,
      },
    }),
  };
}
