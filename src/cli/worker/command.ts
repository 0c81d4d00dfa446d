import type { Clock } from '../../clock.ts';
import { Capture, type Captured } from './capture.ts';
import { type Ended, type Leashed, type LeashOptions, startLeashed } from './leash.ts';
import { prefixed, type Write } from './prefixed.ts';

/** Why a command was ended that had not ended by itself. */
export type StopReason = 'timeout' | 'silence' | 'lost' | 'told' | 'forced';

export interface CommandOptions extends LeashOptions {
  readonly clock: Clock;
  /** Where its output goes, marked with its origin. Without it, it writes to our own output. */
  readonly passOn?: { readonly prefix: string; readonly stdout: Write; readonly stderr: Write } | undefined;
  /** Takes all of its output, however long. */
  readonly keep?: ((chunk: Buffer) => Promise<void>) | undefined;
  readonly timeoutMs?: number | undefined;
  readonly silence?: Silence | undefined;
  readonly stops: Stops;
}

export interface Silence {
  readonly afterMs: number;
  readonly isFatal: boolean;
  readonly alarm: (quietMs: number) => void;
}

export interface Stops {
  readonly lost: AbortSignal;
  readonly told: AbortSignal;
  readonly forced: AbortSignal;
}

export interface Ran extends Ended {
  readonly stopped: StopReason | undefined;
  readonly output: Captured;
}

/** How long a command may take to end by itself, once told to. */
const KILL_AFTER_MS = 10_000;
/** How long the output is still read after the end: something that was left behind may hold it open for ever. */
const LAST_WORDS_MS = 1_000;

/** Runs a command to its end, or to that which is made for it. Leaves no process of its group behind. */
export async function runCommand(options: CommandOptions): Promise<Ran> {
  const { clock, timeoutMs, silence, stops, passOn } = options;
  const command = startLeashed(options);
  const over = new AbortController();
  const output = new Capture();
  let heardAt = clock.now();
  let stopped: StopReason | undefined;
  const stop = (why: StopReason) => {
    // Ctrl-C on the terminal they share reached the command, too; what it means there is for the command to say.
    if (options.isInForeground && why === 'told' && stops.told.reason === 'SIGINT') return;
    stopped ??= why;
    if (why === 'forced') command.kill();
    else void command.stop(nameOf(stops.told), KILL_AFTER_MS, clock);
  };
  const read = readAll(command, passOn, (chunk) => {
    heardAt = clock.now();
    output.add(chunk);
    return options.keep?.(chunk);
  }).catch(() => {});
  const letGo = onStops(stops, stop);
  if (timeoutMs !== undefined) void after(clock, timeoutMs, over.signal, () => stop('timeout'));
  if (silence) {
    void watchSilence({ clock, silence, heardAt: () => heardAt, over: over.signal, stop: () => stop('silence') });
  }
  try {
    const ended = await command.ended;
    await Promise.race([read, clock.sleep(LAST_WORDS_MS, over.signal)]);
    if (stops.told.aborted && ended.signal === 'SIGINT') stopped ??= 'told';
    return { ...ended, stopped, output: output.taken() };
  } finally {
    over.abort();
    letGo();
    if (!options.isInForeground) command.kill();
    command.letGo();
  }
}

async function readAll(
  command: Leashed,
  passOn: CommandOptions['passOn'],
  heard: (chunk: Buffer) => Promise<void> | undefined,
) {
  const follow = async (stream: NodeJS.ReadableStream | null, write: Write | undefined) => {
    const lines = prefixed(passOn?.prefix ?? '', write ?? (() => {}));
    for await (const chunk of stream ?? []) {
      await heard(chunk as Buffer);
      await lines.add(chunk as Buffer);
    }
    await lines.end();
  };
  await Promise.all([follow(command.stdout, passOn?.stdout), follow(command.stderr, passOn?.stderr)]);
}

function onStops(stops: Stops, stop: (why: StopReason) => void): () => void {
  const over = new AbortController();
  for (const why of ['lost', 'told', 'forced'] as const) {
    if (stops[why].aborted) stop(why);
    else stops[why].addEventListener('abort', () => stop(why), { once: true, signal: over.signal });
  }
  return () => over.abort();
}

async function after(clock: Clock, ms: number, over: AbortSignal, act: () => void): Promise<void> {
  await clock.sleep(ms, over);
  if (!over.aborted) act();
}

interface Watch {
  readonly clock: Clock;
  readonly silence: Silence;
  readonly heardAt: () => number;
  readonly over: AbortSignal;
  readonly stop: () => void;
}

/** A heartbeat says that the command lives; only its output says that it gets on. One alarm for each silence. */
async function watchSilence({ clock, silence: { afterMs, isFatal, alarm }, heardAt, over, stop }: Watch) {
  let alarmedFor: number | undefined;
  for (let pauseMs = afterMs; !over.aborted; ) {
    await clock.sleep(pauseMs, over);
    const since = heardAt();
    const quietMs = clock.now() - since;
    pauseMs = quietMs < afterMs ? afterMs - quietMs : afterMs;
    if (over.aborted || quietMs < afterMs || alarmedFor === since) continue;
    alarmedFor = since;
    alarm(quietMs);
    if (isFatal) stop();
  }
}

/** It is told what we were told. */
const nameOf = ({ aborted, reason: name }: AbortSignal): NodeJS.Signals =>
  aborted && name === 'SIGINT' ? 'SIGINT' : 'SIGTERM';
