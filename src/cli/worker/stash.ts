import { createWriteStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ReeveError, reason } from '../../errors.ts';
import type { Manner } from './attempt.ts';
import { runCommand } from './command.ts';
import { exitCodeOf } from './leash.ts';
import { type Attempting, undo } from './undo.ts';
import type { Claimed } from './work-client.ts';

/** Ready: the attempt may begin. Otherwise why it must not. */
export type Readiness =
  | { readonly outcome: 'ready' }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'unready'; readonly error: string };

const READY: Readiness = { outcome: 'ready' };
/** Longer than this nobody waits for what comes before the work. */
const AT_MOST_MS = 10 * 60_000;

/**
 * What comes before the work: an attempt that somebody began and did not end is undone, so that this one does not build on
 * its ruins; then what undoes this one is saved. Only then may anything be changed.
 */
export async function makeReady(held: Claimed, attempting: Attempting): Promise<Readiness> {
  const undone = await undoEarlier(held, attempting);
  return undone.outcome === 'ready' ? takeStash(held, attempting) : undone;
}

async function undoEarlier(held: Claimed, { manner, papers, kept }: Attempting): Promise<Readiness> {
  if (held.task.rollback_strategy === 'none') return READY;
  const { work, rollback, say } = manner;
  const { task_id: id } = held.task;
  const owed = await work.owedStash(held);
  if (!owed) return READY;
  if (rollback === undefined) return leaveToPerson(held, manner);
  say(id, 'an earlier attempt ended half-way: rolling it back first');
  await pipeline(Readable.from(owed), createWriteStream(papers.stashFile, { mode: 0o600 }));
  const back = await undo(held, rollback, { manner, papers, kept });
  const told = await work.rolledBack(held, back.outcome, back.says);
  if (told !== 'heard') return { outcome: 'lost' };
  // What it was undone with is not what undoes the next one.
  await open(papers.stashFile, 'w').then((file) => file.close());
  return back.outcome === 'done' ? READY : { outcome: 'unready', error: `an earlier attempt: ${back.says}` };
}

async function leaveToPerson(held: Claimed, { work }: Manner): Promise<Readiness> {
  const error = 'an earlier attempt has to be rolled back first, and this worker has no --rollback command';
  const told = await work.rolledBack(held, 'manual', error);
  return told === 'heard' ? { outcome: 'unready', error } : { outcome: 'lost' };
}

/** By the command that was given for it: what it writes to the file, or else to its standard output, is the stash. */
async function takeStash(held: Claimed, { manner, papers, kept }: Attempting): Promise<Readiness> {
  const { clock, cwd, env, stash, forced, told } = manner;
  if (stash === undefined || held.task.rollback_strategy === 'none') return READY;
  const stdin = await open(papers.env.REEVE_TASK_FILE as string, 'r');
  const written = await open(`${papers.stashFile}.out`, 'w', 0o600);
  try {
    const ran = await runCommand({
      argv: ['/bin/sh', '-c', stash],
      cwd,
      env: { ...env, ...papers.env },
      clock,
      stdio: [stdin.fd, written.fd, 'inherit', 'ignore'],
      timeoutMs: AT_MOST_MS,
      stops: { lost: kept.signal, told, forced },
    });
    if (ran.stopped === 'lost') return { outcome: 'lost' };
    const exitCode = exitCodeOf(ran);
    if (exitCode !== 0) return { outcome: 'unready', error: `what undoes it was not saved: exit code ${exitCode}` };
    const own = await bytesOf(papers.stashFile);
    return handOver(held, manner, own.length > 0 ? own : await readFile(`${papers.stashFile}.out`));
  } finally {
    await Promise.all([stdin.close(), written.close()]);
  }
}

async function handOver(held: Claimed, { work, rollback }: Manner, bytes: Buffer): Promise<Readiness> {
  const told = await work.stash(held, bytes, rollback).catch((error: unknown) => {
    if (error instanceof ReeveError && error.code === 'FILE_TOO_LARGE') return error;
    throw error;
  });
  if (told === 'heard') return READY;
  if (told instanceof ReeveError) return { outcome: 'unready', error: reason(told) };
  if (told === 'stands') return { outcome: 'unready', error: 'an earlier attempt was not undone' };
  return { outcome: 'lost' };
}

/** A command may have left the file without a word: it is handed in for it, so that people have it, too. */
export async function handInLeft(held: Claimed, { manner, papers }: Attempting): Promise<void> {
  const bytes = await bytesOf(papers.stashFile);
  if (bytes.length === 0 || manner.stash !== undefined || held.task.rollback_strategy === 'none') return;
  const { work, rollback, say } = manner;
  const trouble = (error: unknown) => say(held.task.task_id, `what undoes it was not handed in: ${reason(error)}`);
  await work.stash(held, bytes, rollback).catch(trouble);
}

/** For the rollback: what the daemon has, where the command did not leave it in the file. */
export async function fetchStash(held: Claimed, { manner, papers }: Attempting): Promise<void> {
  if ((await bytesOf(papers.stashFile)).length > 0) return;
  const kept = await manner.work.savedStash(held);
  if (kept) await pipeline(Readable.from(kept), createWriteStream(papers.stashFile, { mode: 0o600 }));
}

async function bytesOf(file: string): Promise<Buffer> {
  const found = await stat(file).catch(() => undefined);
  return found && found.size > 0 && found.isFile() ? readFile(file) : Buffer.alloc(0);
}
