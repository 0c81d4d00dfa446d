import { z } from 'zod';
import { agentSchema } from '../coordinator/locks/lock.ts';
import { agentTypeSchema } from '../coordinator/tasks/task.ts';
import { ReeveError } from '../errors.ts';
import { defineOperation, type Operation } from './operation.ts';

const agent = agentSchema.describe('Which agent');
const card = z
  .object({
    agent_id: z.string(),
    agent_type: z.string(),
    capabilities: z.array(z.string()),
    status: z.string().describe('idle, working or finished; gone: not heard of for a day'),
    takes_work: z.enum(['active', 'draining', 'offline']),
    current_task: z.string().optional(),
    tasks: z.array(z.string()),
    max_tasks: z.int(),
    active_tasks: z.int(),
    started_at: z.string().optional(),
    working_since: z.string().optional().describe('Since when it has had the task it has had longest'),
    note: z.string().optional().describe('What it said of that last'),
    percent: z.number().optional(),
    last_seen: z.string().optional().describe('When it last gave a sign of life'),
  })
  .meta({ id: 'Agent' });
const terms = {
  type: agentTypeSchema.optional().describe('What kind of agent'),
  capabilities: z.array(z.string()).optional().describe('What it can do'),
  max_tasks: z.int().min(1).max(10_000).optional().describe('How many tasks at once'),
};

/** Who works here. */
export const agentOperations: readonly Operation[] = [
  defineOperation({
    name: 'agent.list',
    summary: 'List the agents: who does what, since when',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(card) }),
    errors: [],
    http: { method: 'GET', path: '/agents' },
    cli: {
      words: 'agent list',
      view: 'agents',
      examples: ['reeve agent list'],
    },
    run: async ({ rooms }) => ({ items: await rooms.roster.list() }),
  }),
  defineOperation({
    name: 'agent.register',
    summary: 'Register an agent, or change what is known of it',
    access: 'work',
    input: z.object({ agent, ...terms }),
    output: card,
    errors: [],
    http: { method: 'POST', path: '/agents', answers: { 201: 'Registered' }, status: () => 201 },
    cli: {
      words: 'agent register',
      args: ['agent'],
      examples: ['reeve agent register ann --type codex --max-tasks 2'],
    },
    run: ({ rooms }, { agent: id, type, capabilities, max_tasks: maxTasks }) =>
      rooms.roster.register({ agent: id, type, capabilities, maxTasks }),
  }),
  defineOperation({
    name: 'agent.show',
    summary: 'Show one agent',
    access: 'read',
    input: z.object({ agent }),
    output: card,
    errors: ['AGENT_UNKNOWN'],
    http: { method: 'GET', path: '/agents/{agent}' },
    cli: { words: 'agent show', args: ['agent'], examples: ['reeve agent show ann'] },
    run: async ({ rooms }, { agent: id }) => found(await rooms.roster.show(id), id),
  }),
  defineOperation({
    name: 'agent.update',
    summary: 'Change what an agent is or may do',
    access: 'operate',
    input: z.object({
      agent,
      ...terms,
      takes_work: z.enum(['active', 'draining', 'offline']).optional().describe('Whether it gets new work'),
    }),
    output: card,
    errors: ['AGENT_UNKNOWN'],
    http: { method: 'PATCH', path: '/agents/{agent}' },
    cli: { words: 'agent update', args: ['agent'], examples: ['reeve agent update ann --max-tasks 3'] },
    run: async ({ rooms }, { agent: id, type, capabilities, max_tasks: maxTasks, takes_work }) => {
      found(await rooms.roster.show(id), id);
      const changed = await rooms.roster.register({ agent: id, type, capabilities, maxTasks });
      return takes_work ? found(await rooms.roster.setStatus(id, takes_work), id) : changed;
    },
  }),
  defineOperation({
    name: 'agent.heartbeat',
    summary: 'Say that an agent is alive, or that it has finished',
    access: 'work',
    input: z.object({
      agent,
      finished: z.boolean().default(false).describe('It looks for no more work; counts if it has none in hand'),
    }),
    output: z.object({ agent_id: z.string(), alive: z.boolean() }),
    errors: ['AGENT_UNKNOWN'],
    http: { method: 'POST', path: '/agents/{agent}/heartbeat' },
    cli: {
      words: 'agent beat',
      args: ['agent'],
      view: 'verdict',
      examples: ['reeve agent beat ann', 'reeve agent beat ann --finished'],
    },
    run: async ({ rooms }, { agent: id, finished }) => {
      if (!(await rooms.roster.heartbeat(id, { isFinished: finished })))
        throw new ReeveError('AGENT_UNKNOWN', { agent: id });
      return { agent_id: id, alive: true };
    },
  }),
  defineOperation({
    name: 'agent.drain',
    summary: 'Let an agent finish what it has and give it nothing new',
    access: 'operate',
    input: z.object({ agent }),
    output: card,
    errors: ['AGENT_UNKNOWN'],
    http: { method: 'POST', path: '/agents/{agent}/drain' },
    cli: { words: 'agent drain', args: ['agent'], examples: ['reeve agent drain ann'] },
    run: async ({ rooms }, { agent: id }) => found(await rooms.roster.setStatus(id, 'draining'), id),
  }),
  defineOperation({
    name: 'agent.remove',
    summary: 'Forget an agent; what it works on goes back to the queue',
    access: 'operate',
    input: z.object({ agent }),
    output: z.object({ agent_id: z.string(), dropped: z.array(z.string()) }),
    errors: ['AGENT_UNKNOWN'],
    http: { method: 'DELETE', path: '/agents/{agent}' },
    cli: { words: 'agent remove', args: ['agent'], view: 'verdict', examples: ['reeve agent remove ann'] },
    run: async ({ rooms }, { agent: id }) => {
      const { tasks } = found(await rooms.roster.show(id), id);
      for (const task of tasks) await rooms.tasks.work.drop({ task, agent: id }, `${id} was removed`);
      await rooms.roster.remove(id);
      return { agent_id: id, dropped: tasks };
    },
  }),
];

function found<T>(one: T | undefined, agent: string): T {
  if (one === undefined) throw new ReeveError('AGENT_UNKNOWN', { agent });
  return one;
}
