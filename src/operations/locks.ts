import { z } from 'zod';
import { waitForGraph } from '../coordinator/locks/deadlock.ts';
import { tellCycle } from '../coordinator/locks/deadlock-detector.ts';
import { listLocks } from '../coordinator/locks/list-locks.ts';
import {
  agentSchema,
  CAPACITY_STATUSES,
  formatLock,
  LOCK_MODES,
  lockSchema,
  resourceTypeSchema,
} from '../coordinator/locks/lock.ts';
import { ReeveError } from '../errors.ts';
import { lockAnswer, lockShape } from './lock-shape.ts';
import { defineOperation, type Operation } from './operation.ts';

const key = lockSchema.describe('Which lock: task:ID, resource:TYPE:ID or agent:ID');

/** Looking at locks, and what an operator says about them. */
export const lockOperations: readonly Operation[] = [
  defineOperation({
    name: 'lock.list',
    summary: 'List the locks that are held',
    access: 'read',
    input: z.object({
      agent: agentSchema.optional().describe('Only those of one agent'),
      type: resourceTypeSchema.optional().describe('Only those on one type of resource'),
      limit: z.int().min(1).max(1000).default(20).describe('At most this many at once; with a filter, about'),
      cursor: z.string().max(200).optional().describe('Where the last page ended'),
    }),
    output: z.object({ items: z.array(lockShape), next_cursor: z.string().optional() }),
    errors: ['BAD_CURSOR'],
    http: { method: 'GET', path: '/locks' },
    cli: {
      words: 'lock list',
      columns: ['lock', 'mode', 'holder', 'expires_at', 'waiting', 'purpose'],
      examples: [
        'reeve lock list',
        'reeve lock list --agent ann',
        'reeve lock list --type database --json lock,holder',
      ],
    },
    run: async ({ rooms }, { agent: who, type, limit, cursor }) => {
      const page = await listLocks(rooms.locks, { agent: who, type, limit, cursor });
      return { items: page.locks.map(lockAnswer), ...(page.cursor !== undefined && { next_cursor: page.cursor }) };
    },
  }),
  defineOperation({
    name: 'lock.show',
    summary: 'Show one lock: who holds it, who waits',
    access: 'read',
    input: z.object({ key }),
    output: lockShape,
    errors: [],
    http: { method: 'GET', path: '/locks/{key}' },
    cli: { words: 'lock show', args: ['key'], view: 'lock', examples: ['reeve lock show resource:database:prod'] },
    run: async ({ rooms }, { key: lock }) => lockAnswer(await rooms.locks.inspect(lock)),
  }),
  defineOperation({
    name: 'lock.waitgraph',
    summary: 'Show who waits for whom, and the deadlocks among them',
    description:
      'An edge leads from an agent to one that is in its way: `hard` if that one holds the lock, `soft` if it stands before it in line. A deadlock is listed as soon as it is seen; it is broken when it is still there a heartbeat later.',
    access: 'read',
    input: z.object({}),
    output: z.object({
      edges: z.array(
        z.object({
          from: z.string(),
          to: z.string(),
          lock: z.string(),
          mode: z.enum(LOCK_MODES),
          kind: z.enum(['hard', 'soft']),
          lock_id: z.string(),
        }),
      ),
      deadlocks: z.array(
        z.object({
          victim: z.string().describe('Who is going to give way'),
          lock: z.string(),
          cycle: z.array(
            z.object({
              agent: z.string(),
              waits_for: z.string(),
              mode: z.string(),
              lock_id: z.string(),
              behind: z.string(),
              by: z.enum(['holder', 'queue']),
            }),
          ),
        }),
      ),
    }),
    errors: [],
    http: { method: 'GET', path: '/locks/waitgraph' },
    cli: {
      words: 'lock deadlocks',
      view: 'waitgraph',
      examples: ['reeve lock deadlocks', 'reeve lock deadlocks --json'],
    },
    run: async ({ rooms }) => {
      const { contests, views, deadlocks } = await rooms.deadlocks.look();
      const nameOf = (name: string) => {
        const view = views.find((one) => one.name === name);
        return view ? formatLock(view.lock) : name;
      };
      const graph = waitForGraph(contests);
      return {
        edges: graph.agents
          .flatMap((one) => [...graph.edgesOf(one)])
          .map(({ lock, waiting, behind, kind }) => ({
            from: waiting.agent,
            to: behind.agent,
            lock: nameOf(lock),
            mode: waiting.mode,
            kind,
            lock_id: waiting.lockId,
          })),
        deadlocks: deadlocks.map(({ cycle, victim }) => ({
          victim: victim.waiting.agent,
          lock: nameOf(victim.lock),
          cycle: tellCycle(cycle, views),
        })),
      };
    },
  }),
  defineOperation({
    name: 'lock.capacity',
    summary: 'Say how much an agent may do at once, and whether it takes new work',
    access: 'operate',
    input: z.object({
      key: key.describe('agent:ID'),
      max_tasks: z.int().min(1).max(10_000).optional().describe('How many tasks at once; the first time registers it'),
      status: z.enum(CAPACITY_STATUSES).optional().describe('draining finishes what it has and takes nothing new'),
    }),
    output: lockShape,
    errors: ['LOCK_REFUSED'],
    http: { method: 'PUT', path: '/locks/{key}/capacity' },
    cli: {
      words: 'lock capacity',
      args: ['key'],
      view: 'lock',
      examples: ['reeve lock capacity agent:ann --max-tasks 3', 'reeve lock capacity agent:ann --status draining'],
    },
    run: async ({ rooms }, { key: lock, max_tasks: maxTasks, status }) => {
      if (lock.kind !== 'agent') {
        throw new ReeveError('LOCK_REFUSED', {
          lock: formatLock(lock),
          agent: 'anyone',
          why: 'only agents have a capacity',
          fix: 'Write agent:ID.',
        });
      }
      const set = await rooms.locks.setCapacity(lock.id, { maxTasks, status });
      if (!set) {
        const fix = `Register it: reeve lock capacity ${formatLock(lock)} --max-tasks 1`;
        throw new ReeveError('LOCK_REFUSED', {
          lock: formatLock(lock),
          agent: lock.id,
          why: 'it is not registered',
          fix,
        });
      }
      return lockAnswer(await rooms.locks.inspect(lock));
    },
  }),
];
