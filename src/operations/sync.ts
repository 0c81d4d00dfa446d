import { z } from 'zod';
import { PHASES } from '../sync/reconciler.ts';
import { RUN_OUTCOMES, TRIGGERS } from '../sync/run-record.ts';
import { SOURCE_STATES, type SourceState } from '../sync/source-state.ts';
import type { SyncNews } from '../sync/sync.ts';
import { type Context, defineOperation, type Followed, type Operation } from './operation.ts';

const progress = {
  phase: z.enum(PHASES),
  done: z.int(),
  total: z.int(),
  step: z.string().optional(),
};

const running = z.object({ id: z.string(), trigger: z.enum(TRIGGERS), started_at: z.string(), ...progress });

const problem = z.object({
  code: z.string(),
  message: z.string(),
  next: z.string(),
  retry_after_seconds: z.number().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});

const source = z
  .object({
    name: z.string(),
    namespace: z.string().optional(),
    kind: z.string(),
    address: z.string(),
    state: z.enum(Object.keys(SOURCE_STATES) as [SourceState, ...SourceState[]]),
    says: z.string().describe('The state in words'),
    since: z.string().optional(),
    commit: z.string().optional(),
    synced_at: z.string().optional(),
    checked_at: z.string().optional(),
    next_at: z.string().optional().describe('When it is asked next'),
    assets: z.int(),
    errors: z.int(),
    degraded: z.boolean(),
    failures: z.int(),
    problem: problem.optional(),
    running: running.optional(),
    quota: z
      .object({ limit: z.int(), remaining: z.int(), reset_at: z.string() })
      .optional()
      .describe('Requests left this hour'),
  })
  .meta({ id: 'AssetSource' });

const change = z.object({
  op: z.string(),
  id: z.string(),
  path: z.string(),
  from_path: z.string().optional(),
  old_blob: z.string().optional(),
  new_blob: z.string().optional(),
  version: z.string().optional(),
  successor: z.string().optional(),
});
const count = z.int();
const toldHold = z.object({ id: z.string(), kind: z.string(), says: z.string() });

const run = z
  .object({
    id: z.string(),
    source: z.string(),
    trigger: z.enum(TRIGGERS),
    outcome: z.enum(RUN_OUTCOMES),
    dry_run: z.boolean(),
    full: z.boolean(),
    started_at: z.string(),
    took_ms: z.int(),
    commit: z.string().optional(),
    counts: z
      .object({
        added: count,
        changed: count,
        moved: count,
        removed: count,
        bad: count,
        conflict: count,
        skipped: count,
        held: count,
      })
      .optional(),
    changes: z.array(change).optional().describe('The first hundred'),
    hold: toldHold.optional().describe('It waits for a person as a whole'),
    holds: z.array(toldHold).optional().describe('Parts that wait for a person since this sync'),
    repaired: z.array(z.string()).optional(),
    problem: problem.optional(),
  })
  .meta({ id: 'SyncRun' });

const limit = z.int().min(1).max(200).default(20).describe('At most this many');

export const syncOperations: readonly Operation[] = [
  defineOperation({
    name: 'sync.start',
    summary: 'Bring the assets in step with their sources',
    description:
      'Answers at once with the numbers of the syncs; follow them at GET /sync as server-sent events. The command waits and shows how far it is; without a running daemon it does the work itself.',
    access: 'operate',
    input: z.object({
      source: z.string().optional().describe('Only this source; default all'),
      full: z.boolean().default(false).describe('List and read everything again, whatever is known'),
      dry_run: z.boolean().default(false).describe('Show what would change, and change nothing'),
      accept_source: z.boolean().default(false).describe('Take a repository that replaced the one synced before'),
    }),
    output: z.object({ runs: z.array(z.object({ id: z.string(), source: z.string() })) }),
    errors: ['NO_SUCH_SOURCE'],
    http: { method: 'POST', path: '/sync', answers: { 202: 'It runs' }, status: () => 202 },
    cli: {
      words: 'sync',
      local: 'sync',
      exits: [6],
      examples: ['reeve sync', 'reeve sync --dry-run', 'reeve sync --source github --full'],
    },
    run: async ({ rooms }, { source: name, full, dry_run, accept_source }) => {
      const names = name === undefined ? rooms.sync.names() : [name];
      const asked = { trigger: 'manual', full, dryRun: dry_run, acceptSource: accept_source } as const;
      return { runs: names.map((one) => ({ id: rooms.sync.ask(one, asked)[0]!.id, source: one })) };
    },
  }),
  defineOperation({
    name: 'sync.status',
    summary: 'Show each source: where it stands, what runs, what is wrong',
    description: 'With `Accept: text/event-stream` it goes on with the progress and the end of each sync.',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(source) }),
    errors: [],
    http: { method: 'GET', path: '/sync' },
    cli: {
      words: 'sync status',
      columns: ['name', 'state', 'commit', 'assets', 'errors', 'checked_at', 'next_at'],
      watch: true,
      examples: ['reeve sync status', 'reeve sync status --watch'],
    },
    run: async ({ rooms }) => ({
      items: (await rooms.sync.status()).map(({ since, ...one }) => ({
        ...one,
        says: SOURCE_STATES[one.state].says,
        ...(since && { since }),
        ...(one.running && { running: { ...one.running } }),
      })),
    }),
    follow: followSync,
  }),
  defineOperation({
    name: 'sync.runs',
    summary: 'List past syncs, newest first',
    description: 'Polls that found nothing new leave no entry.',
    access: 'read',
    input: z.object({ limit }),
    output: z.object({ items: z.array(run) }),
    errors: [],
    http: { method: 'GET', path: '/sync/runs' },
    cli: {
      words: 'sync runs',
      columns: ['started_at', 'source', 'trigger', 'outcome', 'commit', 'took_ms'],
      examples: ['reeve sync runs', 'reeve sync runs --limit 5 --json'],
    },
    run: async ({ rooms }, { limit: most }) => ({ items: await rooms.sync.runs(most) }),
  }),
  defineOperation({
    name: 'sync.changes',
    summary: 'List which assets syncs have changed, newest first',
    access: 'read',
    input: z.object({ limit }),
    output: z.object({
      items: z.array(z.looseObject({ at: z.string(), source: z.string(), op: z.string(), id: z.string() })),
    }),
    errors: [],
    http: { method: 'GET', path: '/sync/changes' },
    cli: {
      words: 'sync changes',
      columns: ['at', 'op', 'id', 'source', 'commit'],
      examples: ['reeve sync changes'],
    },
    run: async ({ rooms }, { limit: most }) => ({
      items: (await rooms.sync.changes(most)).map(({ at, in: name, payload }) => ({
        ...payload,
        at,
        source: name,
        op: String(payload.op),
        id: String(payload.id),
      })),
    }),
  }),
];

/** Progress is told as it is, not as it was: a slow listener gets the newest and misses what is overtaken. */
async function* followSync({ rooms, signal }: Context): AsyncIterable<Followed> {
  const ends: SyncNews[] = [];
  const newest = new Map<string, SyncNews>();
  let wake = () => {};
  const stopListening = rooms.sync.listen((news) => {
    if (news.kind === 'ended') {
      newest.delete(news.run.source);
      ends.push(news);
    } else newest.set(news.source, news);
    wake();
  });
  signal.addEventListener('abort', () => wake(), { once: true });
  try {
    for (const { name, running: now } of await rooms.sync.status()) {
      if (now && !newest.has(name)) newest.set(name, { kind: 'progress', source: name, running: now });
    }
    yield { cursor: '', kind: 'listening', item: { kind: 'listening' } };
    while (!signal.aborted) {
      const news = ends.shift() ?? takeFirst(newest);
      if (news) yield { cursor: '', kind: news.kind, item: news };
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (signal.aborted || ends.length > 0 || newest.size > 0) resolve();
        });
      }
    }
  } finally {
    stopListening();
  }
}

function takeFirst(news: Map<string, SyncNews>): SyncNews | undefined {
  const [first] = news;
  if (first) news.delete(first[0]);
  return first?.[1];
}
