import { z } from 'zod';
import { leaseHandle, lockHandle, readLease, readLock } from './handles.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * How a tool asks its operation. A model has one word for a lease and for a lock, waits in seconds, and pays for every letter;
 * the form translates, and decides nothing.
 */
export interface ToolForm {
  readonly input: z.ZodObject;
  readonly output: z.ZodType;
  /** `who`: the agent on whose behalf it is asked, where nothing else says so. */
  readonly asks: (args: never, who: string) => Values;
  readonly answers: (answer: never, args: never) => unknown;
}

interface Form<I extends z.ZodObject, O extends z.ZodType> {
  readonly input: I;
  readonly output: O;
  readonly asks: (args: z.output<I>, who: string) => Values;
  readonly answers: (answer: Values, args: z.output<I>) => z.input<O>;
}
const form = <I extends z.ZodObject, O extends z.ZodType>(given: Form<I, O>): ToolForm => ({
  ...given,
  input: given.input.strict(),
});

const text = z.string();
const MOST_WAIT = 25;
const MOST_ITEMS = 20;
const wait_seconds = z.number().min(0).max(MOST_WAIT).default(0).describe('How long to wait, at most 25 s');
const lease = text.describe('As claim_task returned it');
const agent = text.optional().describe('Who you are, if your token does not say so');
const detail = z.enum(['brief', 'full']).default('brief').describe('How much to tell');
const limit = z.int().min(1).max(MOST_ITEMS).default(MOST_ITEMS).describe('At most so many');
const cursor = text.optional().describe('next_cursor of the page before');
const task_id = text.describe('Id of the task');

const briefTask = z.looseObject({
  task_id: text,
  title: text,
  description: text.optional(),
  acceptance_criteria: text.optional(),
});
const BRIEF = ['task_id', 'title', 'description', 'acceptance_criteria', 'files_to_modify', 'resources'];
const ALSO = ['depends_on', 'parent_task_id', 'rollback_strategy', 'timeout_seconds', 'requires'];

/** Empty texts and lists say nothing to a model. */
const brief = (task: Values, names: readonly string[]): z.input<typeof briefTask> => {
  const says = (value: unknown) => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(names.filter((name) => says(task[name])).map((name) => [name, task[name]])) as never;
};
const pick = (from: Values, names: readonly string[]): Values =>
  Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));

export const TOOL_FORMS: Readonly<Record<string, ToolForm>> = {
  get_briefing: form({
    input: z.object({}),
    output: z.looseObject({ you: text, project: text, state: text, next: text }),
    asks: (_, who) => ({ agent: who }),
    // The commands are for those who have a shell; a model with tools has them already.
    answers: (answer) => ({ ...pick(answer, BRIEFING), next: toolFor(answer) }) as never,
  }),

  claim_task: form({
    input: z.object({
      task_id: task_id.optional().describe('Only this task'),
      labels: z.array(text).max(50).optional().describe('What you can do; default: as registered'),
      wait_seconds,
      agent,
    }),
    output: z.object({
      task: briefTask.optional(),
      lease: text.optional().describe('Give it back with report_progress, submit_change and finish_task'),
      expires_at: text.optional().describe('Say something before then, or the task goes to somebody else'),
      again: z.boolean().optional().describe('You had it already'),
      none: z.boolean().optional().describe('There is nothing for you now'),
      ready: z.int().optional().describe('Ready tasks, for whomever'),
      next_in_seconds: z.int().optional().describe('When to ask again'),
    }),
    asks: (args, who) => ({
      agent: args.agent ?? who,
      wait: args.wait_seconds,
      ...(args.task_id && { task: args.task_id }),
      ...(args.labels && { capabilities: args.labels }),
    }),
    answers: (answer) => {
      const { task, lease: held, again } = answer as { task?: Values; lease?: Values; again?: boolean };
      if (!task || !held) return { none: true, ready: Number(answer.ready ?? 0), next_in_seconds: MOST_WAIT };
      const { agent_id, lock_id, expires_at } = held as Record<string, string>;
      const handle = leaseHandle({ task: String(task.task_id), agent: agent_id!, lock_id: lock_id! });
      return { task: brief(task, [...BRIEF, ...ALSO]), lease: handle, expires_at: expires_at!, again: again ?? false };
    },
  }),

  get_task: form({
    input: z.object({ task_id, detail }),
    output: z.looseObject({ task_id: text, title: text, station: text }),
    asks: ({ task_id: task }) => ({ task }),
    answers: (answer, { detail: much }) =>
      (much === 'full' ? answer : brief(answer, [...BRIEF, ...ALSO, ...STANDING])) as never,
  }),

  find_tasks: form({
    input: z.object({
      station: z
        .enum(['review', 'waiting', 'ready', 'working', 'done', 'failed', 'rejected', 'cancelled'])
        .optional()
        .describe('Only those that stand there'),
      text: text.max(200).optional().describe('Only those whose id or title has this in it'),
      epic: text.optional().describe('Only those of it'),
      limit,
      cursor,
    }),
    output: z.object({
      items: z.array(z.object({ task_id: text, title: text, station: text, because: text.optional() })),
      total: z.int(),
      next_cursor: text.optional(),
    }),
    asks: (args) => args,
    answers: (answer) => {
      const { items, total, next_cursor } = answer as { items: Values[]; total: number; next_cursor?: string };
      const rows = items.map((one) => pick(one, ['task_id', 'title', 'station', 'because']) as never);
      return { items: rows, total, ...(next_cursor && { next_cursor }) };
    },
  }),

  report_progress: form({
    input: z.object({
      lease,
      note: text.min(1).max(10_000).describe('What you did, in words'),
      percent: z.number().min(0).max(100).optional().describe('How far, 0 to 100'),
      files: z.array(text).max(1_000).optional().describe('What you have changed so far'),
    }),
    output: z.object({ task_id: text, expires_at: text }),
    asks: ({ lease: held, note, percent, files }) => ({
      ...readLease(held),
      note: files?.length ? `${note} (files: ${files.join(', ')})`.slice(0, 10_000) : note,
      ...(percent !== undefined && { percent }),
    }),
    answers: (answer) => answer as never,
  }),

  finish_task: form({
    input: z.object({
      lease,
      outcome: z.enum(['completed', 'failed', 'released']).describe('released: somebody else should do it'),
      summary: text.max(100_000).default('').describe('What was done, in words'),
      files_modified: z.array(text).max(10_000).optional().describe('What was changed'),
      error: text.max(20_000).optional().describe('If it failed: what went wrong'),
      retryable: z.boolean().default(true).describe('If it failed: whether to try again'),
    }),
    output: z.object({ task_id: text, station: text, unblocked: z.array(text) }),
    asks: ({ lease: held, ...rest }) => ({ ...readLease(held), ...rest }),
    answers: (answer) => answer as never,
  }),

  acquire_lock: form({
    input: z.object({
      resource: text.max(2_000).describe('TYPE:ID, as in database:prod or file:src/db.ts'),
      mode: z.enum(['exclusive', 'shared']).default('exclusive').describe('shared: you only read it'),
      lease: lease.optional().describe('Of the task you need it for'),
      wait_seconds,
      purpose: text.max(500).optional().describe('What for: whoever waits reads it'),
      lock_id: text.optional().describe('To ask again when you are in line: as this tool returned it'),
      agent,
    }),
    output: z.object({
      outcome: z.enum(['held', 'queued']),
      lock_id: text.describe('Give it to release_lock, or back to this tool while you are in line'),
      fencing_token: z.int().optional().describe('Put it on every write made under the lock'),
      expires_at: text.optional(),
      position: z.int().optional().describe('Place in line; 1 is next'),
      holder: text.optional(),
      because: text.optional(),
      expected_wait_seconds: z.number().nullable().optional(),
    }),
    asks: ({ resource, mode, lease: held, wait_seconds: wait, purpose, lock_id, agent: named }, who) => {
      const before = lock_id === undefined ? undefined : readLock(lock_id);
      return {
        lock: before?.lock ?? fullName(resource),
        agent: before?.agent ?? (held === undefined ? (named ?? who) : readLease(held).agent),
        mode,
        lease_class: 'agent',
        // A place in line outlives the call, so that the next one finds it.
        ...(wait > 0 && { wait: PLACE_SECONDS, block: wait }),
        ...(purpose !== undefined && { purpose }),
        ...(before && { lock_id: before.lock_id, queued: true, wait: PLACE_SECONDS, block: wait }),
      };
    },
    answers: (answer) => {
      const { lock, agent: holder, lock_id, hold } = answer as Record<string, string> & { hold?: Values };
      const shown = pick(answer, ['outcome', 'fencing_token', 'expires_at', 'position', 'expected_wait_seconds']);
      const handle = lockHandle({ lock: lock!, agent: holder!, lock_id: lock_id! });
      return { ...shown, lock_id: handle, ...pick(hold ?? {}, ['holder', 'because']) } as never;
    },
  }),

  release_lock: form({
    input: z.object({ lock_id: text.describe('As acquire_lock returned it') }),
    output: z.object({ outcome: z.enum(['released', 'already', 'left']), lock: text }),
    asks: ({ lock_id: handle }) => {
      const { lock, ...rest } = readLock(handle);
      return { key: lock, ...rest };
    },
    answers: (answer) => pick(answer, ['outcome', 'lock']) as never,
  }),

  submit_change: form({
    input: z.object({
      lease: lease.describe('Of the task you work on'),
      preview: text.min(1).max(100_000).describe('What will change, in words or as a diff'),
      resources: z
        .array(z.object({ type: text, id: text, mode: z.enum(['exclusive', 'shared']).default('exclusive') }))
        .max(100)
        .default([])
        .describe('What it touches; what is not named counts as anything'),
      rollback: z.enum(['automatic', 'manual', 'none']).default('none').describe('How it is undone if it fails'),
      reason: text.min(1).max(2_000).describe('Why it is wanted; the first line is its title'),
    }),
    output: z.looseObject({ approval_id: text, task_id: text, outcome: text, next: text }),
    asks: ({ lease: held, ...rest }) => ({ ...readLease(held), ...rest }),
    answers: (answer) => changeFor(answer),
  }),

  check_change: form({
    input: z.object({ approval_id: text.describe('As submit_change returned it'), wait_seconds }),
    output: z.looseObject({ approval_id: text, task_id: text, outcome: text, next: text }),
    asks: ({ approval_id: change, wait_seconds: wait }) => ({ change, wait }),
    answers: (answer) => changeFor(answer),
  }),

  find_assets: form({
    input: z.object({
      query: text.max(400).optional().describe('Words to look for; prefixes match'),
      category: z.enum(['tool', 'prompt', 'skill']).optional().describe('Only these'),
      limit,
      cursor,
    }),
    output: z.object({
      items: z.array(z.looseObject({ id: text, category: text, name: text })),
      next_cursor: text.optional(),
    }),
    asks: (args) => args,
    answers: (answer) => {
      const { items, next_cursor } = answer as { items: Values[]; next_cursor?: string };
      const rows = items.map((one) => pick(one, ['id', 'category', 'name', 'version', 'description', 'uri']));
      return { items: rows as never, ...(next_cursor && { next_cursor }) };
    },
  }),

  get_asset: form({
    input: z.object({
      id: text.describe('Id of the asset'),
      version: text.optional().describe('As it was then'),
      detail,
    }),
    output: z.looseObject({ id: text, category: text }),
    asks: ({ id, version }) => ({ id, ...(version && { version }) }),
    answers: (answer, { detail: much }) => (much === 'full' ? answer : pick(answer, ASSET)) as never,
  }),
};

function toolFor({ state, yours }: Values): string {
  if (state !== 'ready' && state !== 'degraded') return 'reeve is not well: ask a person';
  return (yours as unknown[]).length > 0 ? 'claim_task returns what is yours' : 'claim_task';
}

const BRIEFING = ['you', 'project', 'state', 'work', 'yours', 'rules'];
const STANDING = ['station', 'status', 'state', 'agent_id', 'waits_for', 'releases', 'because', 'attempts', 'percent'];
const ASSET = [
  'id',
  'category',
  'name',
  'version',
  'description',
  'agent_specs',
  'config_schema',
  'permissions',
  'uri',
];
/** How long a place in line is kept between two calls of a model. */
const PLACE_SECONDS = 120;

const fullName = (resource: string): string =>
  /^(resource|task|agent):/.test(resource) ? resource : `resource:${resource}`;

/** The four factors of a risk in short: their names, points and reasons. */
function changeFor(answer: Values) {
  const { risk, ...rest } = answer as Values & { risk?: { score: number; level: string; factors: Values[] } };
  const factors = risk?.factors.map((one) => pick(one, ['name', 'points', 'because']));
  return { ...rest, ...(risk && { risk: { score: risk.score, level: risk.level, factors } }) } as never;
}
