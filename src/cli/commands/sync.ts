import { createAssetRooms } from '../../asset-rooms.ts';
import { systemClock } from '../../clock.ts';
import { type Loaded, loadConfig } from '../../config.ts';
import { readDaemonFile } from '../../daemon-file.ts';
import { ERRORS, EXIT } from '../../error-catalogue.ts';
import { ReeveError } from '../../errors.ts';
import { silentLog } from '../../log.ts';
import { withRedis } from '../../standalone.ts';
import type { RunRecord } from '../../sync/run-record.ts';
import type { Running } from '../../sync/source-runner.ts';
import type { SyncNews } from '../../sync/sync.ts';
import { Client } from '../client.ts';
import type { CommandModule, Surroundings } from '../main.ts';
import type { Output } from '../output.ts';
import type { Typed } from '../program.ts';
import { line } from '../render.ts';
import { syncProgress } from '../sync-progress.ts';
import { readTokenFile } from '../token-file.ts';

type Show = (source: string, running: Running) => void;

/** Through the daemon that runs on the data directory; where none runs, the work is done here, on the same Redis. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const show = syncProgress(output);
  const client = await daemonOf(typed, surroundings);
  const runs =
    client instanceof Client
      ? await byDaemon(client, typed, surroundings, show)
      : await byHand(client, typed, surroundings, show);
  output.status();
  if (output.form === 'json') output.json({ runs });
  else for (const one of runs) tell(output, one);
  return surroundings.signal.aborted ? EXIT.interrupted : exitOf(runs);
};

async function daemonOf({ flags }: Typed, { env, cwd }: Surroundings): Promise<Client | Loaded> {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  const token = text('token') ?? env.REEVE_TOKEN;
  const named = text('url') ?? env.REEVE_URL;
  if (named) return new Client(named, token);
  const loaded = loadConfig({ flags, env, cwd });
  const running = await readDaemonFile(loaded.config.dataDir);
  const isListening = running?.address.startsWith('http');
  return isListening ? new Client(running!.address, token ?? readTokenFile(loaded.config.dataDir)) : loaded;
}

/** Listening begins before the sync, so that its end cannot be missed. */
async function byDaemon(client: Client, { input }: Typed, { signal }: Surroundings, show: Show): Promise<RunRecord[]> {
  const ended: RunRecord[] = [];
  const over = new AbortController();
  let wanted: Set<string> | undefined;
  const news = client.follow({
    method: 'GET',
    path: '/sync',
    input: {},
    signal: AbortSignal.any([signal, over.signal]),
  });
  for await (const { item } of news) {
    const told = item as SyncNews | { kind: 'listening' };
    if (told.kind === 'listening') {
      const { answer } = await client.ask({ method: 'POST', path: '/sync', input: typedInput(input), signal });
      wanted = new Set((answer as { runs: { id: string }[] }).runs.map(({ id }) => id));
    }
    if (told.kind === 'progress') show(told.source, told.running);
    if (told.kind === 'ended' && wanted?.delete(told.run.id)) ended.push(told.run);
    if (wanted?.size === 0) break;
  }
  over.abort();
  if (wanted?.size !== 0 && !signal.aborted) {
    throw new ReeveError('DAEMON_UNREACHABLE', { url: client.url, problem: 'it stopped before the sync had ended' });
  }
  return ended;
}

const typedInput = (input: Typed['input']) =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, name === 'source' ? value : isYes(value)]));
const isYes = (value: unknown): boolean => value === true || value === 'yes' || value === 'true';

async function byHand(
  { config, sources }: Loaded,
  { input }: Typed,
  { env, manifest, signal }: Surroundings,
  show: Show,
): Promise<RunRecord[]> {
  const shared = { config, env, clock: systemClock, log: silentLog };
  return withRedis({ ...shared, version: manifest.version }, async (connection) => {
    const mode = config.redis.mode === 'cluster' ? 'cluster' : 'standalone';
    const isDirNamed = sources['assets.dir'] !== 'default';
    const rooms = createAssetRooms({
      ...shared,
      isDirNamed,
      connection,
      mode,
      fetch,
      holder: `reeve sync of ${config.instance}`,
    });
    rooms.sync.listen((news) => {
      if (news.kind === 'progress') show(news.source, news.running);
    });
    signal.addEventListener('abort', () => void rooms.sync.stop(), { once: true });
    try {
      const { source, full, dry_run, accept_source } = input as Record<string, string | boolean | undefined>;
      const asked = {
        trigger: 'manual',
        full: isYes(full),
        dryRun: isYes(dry_run),
        acceptSource: isYes(accept_source),
      } as const;
      const tickets = rooms.sync.ask(typeof source === 'string' ? source : undefined, asked);
      return await Promise.all(tickets.map(({ done }) => done));
    } finally {
      await rooms.close();
    }
  });
}

function tell(output: Output, run: RunRecord): void {
  const { source, outcome, commit, counts, took_ms, changes = [], problem, hold, holds = [], repaired, dry_run } = run;
  const short = commit?.slice(0, 7);
  output.print(`${outcome} ${line({ source, commit: short, ...counts, repaired: repaired?.length, took_ms })}`);
  if (dry_run) for (const { op, id, path } of changes) output.print(`  ${op} ${id} ${path}`);
  for (const { id, says } of hold ? [hold] : holds)
    output.hint(`${says}\n  ${output.style('dim', 'next')}  reeve asset release ${id} --reason WHY`);
  if (!hold && holds.length === 0 && isHeld(run)) output.hint(`  ${output.style('dim', 'next')}  reeve asset holds`);
  if (problem)
    output.hint(
      `${output.style('red', 'error')} ${problem.message}\n  ${output.style('dim', 'next')}  ${problem.next}`,
    );
  else if ((counts?.bad ?? 0) + (counts?.conflict ?? 0) > 0)
    output.hint(`  ${output.style('dim', 'next')}  reeve asset invalid`);
}

/** As a whole, or single assets of it: a person must release them. */
const isHeld = ({ outcome, counts }: RunRecord): boolean => outcome === 'held' || (counts?.held ?? 0) > 0;

/** The worst of them speaks for all. */
function exitOf(runs: readonly RunRecord[]): number {
  const failed = runs.find(({ problem }) => problem);
  if (failed?.problem) return ERRORS[failed.problem.code].exit;
  return runs.some(isHeld) ? EXIT.held : EXIT.ok;
}
