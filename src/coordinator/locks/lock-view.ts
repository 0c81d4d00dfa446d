import { z } from 'zod';
import { CAPACITY_STATUSES, LEASE_CLASS_NAMES, LOCK_MODES, type LockRef, type LockView, lockName } from './lock.ts';

/** cjson writes an empty list as an object. */
const list = <S extends z.ZodType>(schema: S) =>
  z.union([z.array(schema), z.strictObject({}).transform((): z.output<S>[] => [])]);

const seen = z.object({
  at: z.string(),
  token: z.coerce.number(),
  state: z.enum(['held', 'released', 'expired', 'free']),
  shared: z.boolean(),
  vanished: list(z.string()),
  hold_us: z.coerce.number().optional(),
  holders: list(
    z.object({
      agent_id: z.string().optional(),
      lock_id: z.string(),
      fencing_token: z.coerce.number(),
      acquired_at: z.string(),
      expires_at: z.string(),
      purpose: z.string().default(''),
      lease_class: z.enum(LEASE_CLASS_NAMES).default('process'),
      heartbeat_count: z.number().default(0),
      state: z.enum(['live', 'grace', 'expired']),
    }),
  ),
  waiters: list(
    z.object({
      agent_id: z.string(),
      lock_id: z.string(),
      mode: z.enum(LOCK_MODES),
      priority: z.number().default(0),
      requested_at: z.string(),
      max_wait_seconds: z.number(),
      since: z.coerce.number(),
      alive: z.boolean(),
    }),
  ),
  capacity: z
    .object({
      max_tasks: z.number(),
      active_tasks: z.number(),
      queued_tasks: z.number(),
      status: z.enum(CAPACITY_STATUSES),
      last_heartbeat: z.string(),
    })
    .optional(),
});

/** What inspect.lua says of one lock. `vanished` are the holders whose key ended before anyone noticed. */
export type Seen = LockView & { readonly vanished: readonly string[] };

export function lockView(lock: LockRef, json: string): Seen {
  const { capacity, ...found } = seen.parse(JSON.parse(json));
  const mode = found.shared ? 'shared' : 'exclusive';
  return {
    lock,
    name: lockName(lock),
    mode: found.holders.length > 0 ? mode : undefined,
    token: found.token,
    state: found.state,
    averageHoldMs: found.hold_us === undefined ? undefined : found.hold_us / 1000,
    at: found.at,
    vanished: found.vanished,
    holders: found.holders.map((holder) => ({
      agent: holder.agent_id ?? lock.id,
      lockId: holder.lock_id,
      mode,
      token: holder.fencing_token,
      acquiredAt: holder.acquired_at,
      expiresAt: holder.expires_at,
      purpose: holder.purpose,
      leaseClass: holder.lease_class,
      heartbeats: holder.heartbeat_count,
      state: holder.state,
    })),
    waiters: found.waiters.map((waiter) => ({
      agent: waiter.agent_id,
      lockId: waiter.lock_id,
      mode: waiter.mode,
      priority: waiter.priority,
      requestedAt: waiter.requested_at,
      maxWaitSeconds: waiter.max_wait_seconds,
      since: waiter.since,
      alive: waiter.alive,
    })),
    ...(capacity && {
      capacity: {
        maxTasks: capacity.max_tasks,
        activeTasks: capacity.active_tasks,
        queuedTasks: capacity.queued_tasks,
        status: capacity.status,
        lastHeartbeat: capacity.last_heartbeat,
      },
    }),
  };
}
