import { z } from 'zod';
import {
  type AcquireOutcome,
  agentSchema,
  formatLock,
  LEASE_CLASS_NAMES,
  LOCK_MODES,
  type LockRef,
  lockIdSchema,
  lockSchema,
} from '../coordinator/locks/lock.ts';
import { holdOfView } from '../coordinator/locks/lock-hold.ts';
import type { Locks } from '../coordinator/locks/locks.ts';
import { ReeveError } from '../errors.ts';
import { acquired, answerOf, withHold } from './lock-answers.ts';
import { defineOperation, type Operation } from './operation.ts';

const HOUR = 3600;
const key = lockSchema.describe('Which lock: task:ID, resource:TYPE:ID or agent:ID');
const agent = agentSchema.describe('Who asks');
const ttl = z
  .number()
  .positive()
  .max(24 * HOUR);
const seconds = (max: number) => z.number().min(0).max(max);

/** What whoever uses a lock says: take, renew, give back. */
export const lockRequestOperations: readonly Operation[] = [
  defineOperation({
    name: 'lock.acquire',
    summary: 'Take a lock, or a place in its line',
    description:
      'Answers at once: 201 held, 423 taken (without `wait`), 202 in line (with `wait`). In line, ask again with the same `lock_id` until 201; a call that says `block` answers when it has the lock, at the latest after that long. A repeated call is the same request: a lost answer costs nothing.',
    access: 'work',
    input: z.object({
      lock: key,
      agent,
      also: z.array(lockSchema).max(31).optional().describe('Further locks, taken in the same step: all or nothing'),
      mode: z.enum(LOCK_MODES).default('exclusive').describe('shared lets others share it, too'),
      purpose: z.string().max(500).optional().describe('What for, in words: whoever waits reads it'),
      wait: seconds(HOUR).default(0).describe('Seconds to stay in line; 0 does not join it'),
      block: seconds(25).default(0).describe('Seconds that this call may take to answer'),
      ttl: ttl.optional().describe('Seconds that it lives without a heartbeat. Default: by lease class'),
      lease_class: z
        .enum(LEASE_CLASS_NAMES)
        .optional()
        .describe('process beats by itself; agent is for models: long leases, and a grace (default "process")'),
      max_hold: z
        .number()
        .positive()
        .max(7 * 24 * HOUR)
        .optional()
        .describe('Seconds after which no heartbeat helps'),
      lock_id: lockIdSchema.optional(),
      queued: z
        .boolean()
        .default(false)
        .describe('You were in line: say so if the place was lost, rather than join anew'),
      priority: z.int().min(0).max(100).default(50).describe('For show, and to choose who gives way in a deadlock'),
    }),
    output: acquired,
    errors: [
      'LOCK_HELD',
      'DEADLOCK_DETECTED',
      'WAIT_OVER',
      'QUEUE_FULL',
      'LOCK_REFUSED',
      'LOCK_LOST',
      'LOCK_NOT_COPIED',
      'RATE_LIMITED',
    ],
    http: {
      method: 'POST',
      path: '/locks',
      answers: { 201: 'Held', 202: 'In line: ask again with the same lock_id' },
      status: ({ outcome }) => (outcome === 'held' ? 201 : 202),
    },
    cli: {
      words: 'lock acquire',
      args: ['lock'],
      local: 'lock-acquire',
      takesSettings: false,
      examples: [
        'reeve lock acquire task:T-1 --agent ann --purpose "migrating"',
        'reeve lock acquire resource:file:src/app.ts --agent ann --mode shared --wait 60',
      ],
    },
    mcp: {
      tool: 'acquire_lock',
      description:
        'Lock something before you change it: task:ID or resource:TYPE:ID. Returns lock_id and fencing_token, or your place in line: then call again with the same lock_id. Use wait and block (up to 25 s) to wait. Release it when done.',
      readOnly: false,
      idempotent: true,
      defaults: { lease_class: 'agent' },
    },
    run: async ({ rooms, signal }, input) => {
      const { lock, also = [], mode, agent: who, lock_id: lockId, wait, block, queued } = input;
      const request = {
        locks: [lock, ...also].map((one) => ({ lock: one, mode: one.kind === 'resource' ? mode : undefined })),
        agent: who,
        lockId,
        purpose: input.purpose,
        leaseClass: input.lease_class,
        leaseMs: ms(input.ttl),
        maxHoldMs: ms(input.max_hold),
        waitMs: wait * 1000,
        priority: input.priority,
        queued,
      };
      const outcome = await rooms.lockDesk.ask(request, { blockMs: block * 1000, signal });
      const heartbeatSeconds = await rooms.live.get('lock:heartbeat_interval');
      const asking = { lock, agent: who, heartbeatSeconds, now: rooms.clock.now() };
      return withHold(rooms.locks, refusedLock(outcome) ?? lock, who, async () => answerOf(outcome, asking));
    },
  }),
  defineOperation({
    name: 'lock.heartbeat',
    summary: 'Renew a lock you hold',
    access: 'work',
    input: z.object({
      key,
      lock_id: lockIdSchema,
      agent: agent.optional(),
      agent_id: agent.optional().describe('The same, as the heartbeat message spells it'),
      also: z.array(lockSchema).max(31).optional().describe('Further locks of the same lock_id'),
      ttl_extension: ttl.optional().describe('Seconds from now. Default: its usual lease'),
      timestamp: z.number().optional().describe('When you sent it; only for the log, Redis judges the time'),
    }),
    output: z.object({
      outcome: z.literal('extended'),
      lock: z.string(),
      lock_id: z.string(),
      expires_at: z.string(),
      heartbeats: z.int(),
    }),
    errors: ['LOCK_LOST'],
    http: { method: 'POST', path: '/locks/{key}/heartbeat' },
    cli: {
      words: 'lock beat',
      args: ['key'],
      view: 'lock',
      examples: ['reeve lock beat task:T-1 --agent ann --lock-id LOCK-ID'],
    },
    run: async ({ rooms }, { key: lock, also = [], lock_id: lockId, agent: who, agent_id: alias, ttl_extension }) => {
      const holder = named(who ?? alias, 'lock.heartbeat', 'lock beat');
      const grant = { locks: [lock, ...also], agent: holder, lockId };
      const outcome = await rooms.lockDesk.beat(grant, ms(ttl_extension));
      if (outcome.outcome === 'lost') throw await lost(rooms.locks, outcome.lock, holder, lockId);
      const { expiresAt, heartbeats } = outcome;
      return {
        outcome: 'extended' as const,
        lock: formatLock(lock),
        lock_id: lockId,
        expires_at: expiresAt,
        heartbeats,
      };
    },
  }),
  defineOperation({
    name: 'lock.release',
    summary: 'Give a lock back, or a place in its line',
    access: 'work',
    input: z.object({
      key,
      lock_id: lockIdSchema,
      agent,
      also: z.array(lockSchema).max(31).optional().describe('Further locks of the same lock_id'),
    }),
    output: z.object({
      outcome: z.enum(['released', 'already', 'left']).describe('left: it was not held, but waited for'),
      lock: z.string(),
      lock_id: z.string(),
    }),
    errors: ['LOCK_LOST'],
    http: { method: 'DELETE', path: '/locks/{key}' },
    cli: {
      words: 'lock release',
      args: ['key'],
      view: 'lock',
      examples: ['reeve lock release task:T-1 --agent ann --lock-id LOCK-ID'],
    },
    mcp: {
      tool: 'release_lock',
      description: 'Give back a lock that acquire_lock gave you, or your place in its line. Releasing twice is fine.',
      readOnly: false,
      idempotent: true,
    },
    run: async ({ rooms }, { key: lock, also = [], lock_id: lockId, agent: who }) => {
      const grant = { locks: [lock, ...also], agent: who, lockId };
      // The place first: whoever stands in line no more cannot be given the lock after it was given back.
      const left = await rooms.locks.cancelWait(grant);
      const outcomes = (await rooms.locks.release(grant)).map(({ outcome }) => outcome);
      const done = { lock: formatLock(lock), lock_id: lockId };
      if (outcomes.includes('released')) return { outcome: 'released' as const, ...done };
      if (left) return { outcome: 'left' as const, ...done };
      if (outcomes.every((outcome) => outcome === 'already')) return { outcome: 'already' as const, ...done };
      throw await lost(rooms.locks, lock, who, lockId);
    },
  }),
];

const ms = (value: number | undefined): number | undefined => (value === undefined ? undefined : value * 1000);

/** Of several, the one that decided. */
const refusedLock = (outcome: AcquireOutcome): LockRef | undefined => ('lock' in outcome ? outcome.lock : undefined);

async function lost(locks: Locks, lock: LockRef, agentId: string, lockId: string): Promise<ReeveError> {
  const hold = holdOfView(await locks.inspect(lock), { agent: agentId });
  return new ReeveError('LOCK_LOST', { lock: formatLock(lock), agent: agentId, lockId, ...(hold && { hold }) });
}

function named(who: string | undefined, operation: string, command: string): string {
  if (who !== undefined) return who;
  throw new ReeveError('INVALID_INPUT', { operation, command, problem: 'agent: required' });
}
