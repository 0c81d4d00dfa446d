import { systemClock } from './clock.ts';
import { type Loaded, loadConfig } from './config.ts';
import type { Environment, Flags } from './config-layers.ts';
import { createDaemon, type Daemon } from './daemon.ts';
import { asReeveError, type ReeveError, reason } from './errors.ts';
import { keepHeapSmall } from './heap.ts';
import { createLog, type RootLogger } from './log.ts';
import { readVersion } from './version.ts';

export interface RunOptions {
  readonly flags: Flags;
  readonly env: Environment;
  readonly cwd: string;
  readonly print: (text: string) => void;
}

/** Settings that take effect at once when the configuration is read again. */
const LIVE = new Set(['log.level']);

/** Runs the daemon as this process, until a signal or until something breaks for good. Returns the exit code. */
export async function runDaemon({ flags, env, cwd, print }: RunOptions): Promise<number> {
  keepHeapSmall();
  let loaded = loadConfig({ flags, env, cwd });
  const { level, format } = loaded.config.log;
  const isPretty = format === 'pretty' || (format === 'auto' && process.stdout.isTTY);
  const log = await createLog({ level, format: isPretty ? 'pretty' : 'json' });
  const ending = Promise.withResolvers<Ending>();
  const daemon = createDaemon({
    loaded: () => loaded,
    log,
    version: readVersion(),
    cwd,
    env,
    onFatal: (error) => ending.resolve({ why: error.message, exit: error.row.exit }),
  });

  const drain = (signal: NodeJS.Signals) => ending.resolve({ why: signal, exit: 0 });
  const force = (signal: NodeJS.Signals) => {
    log.warn('second signal: not waiting any longer', { signal });
    process.exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      for (const again of ['SIGTERM', 'SIGINT'] as const) process.on(again, force);
      drain(signal);
    });
  }
  process.on('SIGHUP', () => void reload());
  process.on('uncaughtException', (error) => {
    log.error('something broke that nobody foresaw', { problem: error.stack ?? error.message });
    ending.resolve({ why: error.message, exit: 1 });
  });

  async function reload(): Promise<void> {
    let changed: string[];
    try {
      const read = loadConfig({ flags, env, cwd });
      changed = changes(loaded, read);
      loaded = withLive(loaded, read);
    } catch (error) {
      log.error('the new configuration was not taken', { problem: reason(error) });
      return;
    }
    const needRestart = changed.filter((name) => !LIVE.has(name));
    log.setLevel(loaded.config.log.level);
    log.info('configuration read again', { changed, needRestart });
    await daemon.reloaded({ changed, needRestart });
  }

  daemon.start().then(
    () => announce(daemon, log, isPretty, print),
    (error: unknown) => ending.resolve({ why: '', exit: 1, error: asReeveError(error) }),
  );
  const { why, exit, error } = await ending.promise;
  if (error) throw error;
  log.info('stopping', { why });
  try {
    await daemon.stop();
    log.info('stopped');
    return exit;
  } catch (failure) {
    log.error('not everything stopped cleanly', { problem: reason(failure) });
    return 1;
  }
}

interface Ending {
  readonly why: string;
  readonly exit: number;
  readonly error?: ReeveError;
}

const NEXT = ['reeve status', 'reeve doctor', 'reeve events --follow'];

/** Says where it is, what it brought along, and what to try; in words for people, in fields for machines. */
function announce(
  { url, dependencies }: Daemon,
  log: RootLogger,
  isPretty: boolean,
  print: (text: string) => void,
): void {
  const embedded = dependencies.filter((one) => one.embedded);
  if (!isPretty) {
    log.info('ready', { url, embedded: embedded.map(({ name }) => name), next: NEXT });
    return;
  }
  const width = Math.max(...dependencies.map(({ name }) => name.length));
  const lines = dependencies.map(
    (one) => `  ${one.name.padEnd(width)}  ${one.embedded ? 'embedded' : 'external'}  ${one.address()}`,
  );
  const since = `${Math.round(systemClock.now() - performance.timeOrigin)} ms`;
  print(
    `\nreeve is ready at ${url}   (${since})\n${lines.join('\n')}\n\nTry next, in another terminal:\n${NEXT.map((command) => `  bin/${command}`).join('\n')}\n\nAPI docs: ${url}/docs   Stop: Ctrl-C\n`,
  );
}

/** What runs, with the live settings as just read. The rest goes on as it is, and is shown so, until a restart. */
const withLive = (running: Loaded, read: Loaded): Loaded => ({
  ...running,
  config: { ...running.config, log: { ...running.config.log, level: read.config.log.level } },
  sources: { ...running.sources, 'log.level': read.sources['log.level'] ?? 'default' },
});

function changes(before: Loaded, after: Loaded): string[] {
  const flat = (value: unknown, trail = ''): [string, string][] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, child]) => flat(child, trail ? `${trail}.${key}` : key))
      : [[trail, JSON.stringify(value)]];
  const old = new Map(flat(before.config));
  const now = new Map(flat(after.config));
  return [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name) !== now.get(name));
}
