import { z } from 'zod';
import { agentSchema } from '../coordinator/locks/lock.ts';
import { PERMISSIONS } from '../identity/permissions.ts';
import { briefing } from '../system/briefing.ts';
import { isHealthy } from '../system/doctor.ts';
import { defineOperation, type Operation } from './operation.ts';
import { boardShape, countsShape } from './task-answers.ts';

const facts = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

const dependency = z
  .object({
    name: z.string(),
    ok: z.boolean(),
    required: z.boolean().describe('Without it the daemon is not ready'),
    embedded: z.boolean().describe('Run by the daemon itself'),
    address: z.string(),
    latency_ms: z.number(),
    since: z.string().describe('Since when it has been as it is'),
    facts,
    code: z.string().optional(),
    problem: z.string().optional(),
    next: z.string().optional(),
  })
  .meta({ id: 'Dependency' });

const finding = z
  .object({
    check: z.string(),
    result: z.enum(['ok', 'warn', 'fail', 'skipped']),
    says: z.string(),
    fix: z.string().optional(),
  })
  .meta({ id: 'Finding' });

const nothing = z.object({});

export const systemOperations: readonly Operation[] = [
  defineOperation({
    name: 'system.status',
    summary: 'Show what runs, whether it is well, and how the work gets on',
    access: 'read',
    input: nothing,
    output: z.object({
      state: z.enum(['ready', 'degraded', 'not ready', 'draining']),
      version: z.string(),
      instance: z.string(),
      project: z.string(),
      address: z.string(),
      data_dir: z.string(),
      pid: z.int(),
      started_at: z.string(),
      uptime_seconds: z.number(),
      identity: z
        .enum(['local', 'tokens', 'unknown'])
        .describe('local: callers on this machine are admin; tokens: every call needs one'),
      dependencies: z.array(dependency),
      work: boardShape.optional().describe('Absent while Redis cannot be asked'),
    }),
    errors: [],
    http: { method: 'GET', path: '/status' },
    cli: { words: 'status', view: 'status', watch: true, examples: ['reeve status', 'reeve status --watch'] },
    run: async ({ rooms }) => {
      const status = await rooms.system.status();
      const isReachable = status.dependencies.some(({ name, ok }) => name === 'redis' && ok);
      const work = isReachable ? await rooms.board.look().catch(() => undefined) : undefined;
      return { ...status, ...(work && { work }) };
    },
  }),
  defineOperation({
    name: 'system.health',
    summary: 'Say whether the daemon is alive',
    description: 'Asks nothing of Redis or the database: use it to decide whether to restart the process.',
    access: 'open',
    input: nothing,
    output: z.object({ alive: z.boolean(), version: z.string(), pid: z.int(), uptime_seconds: z.number() }),
    errors: [],
    http: { method: 'GET', path: '//healthz' },
    cli: { words: 'health', examples: ['reeve health'] },
    run: async ({ rooms }) => rooms.system.health(),
  }),
  defineOperation({
    name: 'system.readiness',
    summary: 'Say whether the daemon can do its work, dependency by dependency',
    description: 'Answers 503 while something required is missing or while the daemon drains.',
    access: 'open',
    input: nothing,
    output: z.object({ ready: z.boolean(), draining: z.boolean(), dependencies: z.array(dependency) }),
    errors: [],
    http: {
      method: 'GET',
      path: '//readyz',
      answers: { 200: 'Ready', 503: 'Not ready, or draining' },
      status: ({ ready }) => (ready ? 200 : 503),
    },
    cli: { words: 'ready', view: 'status', examples: ['reeve ready', 'reeve ready --json | jq .ready'] },
    run: ({ rooms }) => rooms.system.readiness(),
  }),
  defineOperation({
    name: 'system.config',
    summary: 'Show the effective settings, secrets hidden',
    access: 'read',
    input: z.object({ sources: z.boolean().default(false).describe('Say where each value came from') }),
    output: z.object({
      file: z.string().optional(),
      settings: z.looseObject({}),
      sources: z.record(z.string(), z.string()).optional(),
    }),
    errors: ['CONFIG_INVALID', 'CONFIG_UNREADABLE'],
    http: { method: 'GET', path: '/config' },
    cli: {
      words: 'config show',
      local: 'config-show',
      examples: ['reeve config show', 'reeve config show --sources'],
    },
    run: async ({ rooms }, { sources }) => {
      const { file, settings, sources: where } = rooms.system.config();
      return {
        ...(file && { file }),
        settings: settings as Record<string, unknown>,
        ...(sources && { sources: where }),
      };
    },
  }),
  defineOperation({
    name: 'system.doctor',
    summary: 'Check everything reeve stands on and say how to mend it',
    access: 'read',
    input: nothing,
    output: z.object({ healthy: z.boolean(), findings: z.array(finding) }),
    errors: [],
    http: { method: 'GET', path: '/doctor' },
    cli: { words: 'doctor', local: 'doctor', exits: [1], examples: ['reeve doctor', 'reeve doctor --json'] },
    run: async ({ rooms }) => {
      const findings = await rooms.system.doctor();
      return { healthy: isHealthy(findings), findings };
    },
  }),
  defineOperation({
    name: 'system.briefing',
    summary: 'Brief an agent: who it is here, what there is, how to work',
    access: 'read',
    input: z.object({ agent: agentSchema.optional().describe('Which agent; default: who asks') }),
    output: z.object({
      you: z.string(),
      project: z.string(),
      state: z.string(),
      work: countsShape,
      yours: z
        .array(z.object({ task_id: z.string(), title: z.string(), expires_at: z.string() }))
        .describe('Tasks that you have a lease on'),
      rules: z.array(z.string()),
      commands: z.array(z.object({ command: z.string(), does: z.string() })),
      next: z.string(),
    }),
    errors: [],
    http: { method: 'GET', path: '/briefing' },
    cli: { words: 'prime', view: 'prime', examples: ['reeve prime'] },
    mcp: {
      tool: 'get_briefing',
      description:
        'Start here. Returns who you are to reeve, the state of the project, the rules for working here, the commands for agents and what to call next.',
      readOnly: true,
      idempotent: true,
    },
    run: async ({ rooms, caller, operations }, { agent = caller.id }) => {
      const [status, work, yours] = await Promise.all([
        rooms.system.status(),
        rooms.tasks.views.progress(),
        rooms.tasks.views.heldBy(agent),
      ]);
      const commands = operations
        .filter(({ access, mcp }) => mcp || (AGENTS_DO.includes(access) && PERMISSIONS[access].agent !== 'no'))
        .map(({ cli, summary }) => ({ command: `reeve ${cli.words}`, does: summary }));
      return briefing(status, { you: agent, work, yours }, commands);
    },
  }),
];

/** What an agent reads on arrival is what it does; the rest is in `reeve --help`. */
const AGENTS_DO: readonly string[] = ['work', 'create', 'submit'];
