import { backOff, type Clock } from '../../clock.ts';
import { EXIT } from '../../error-catalogue.ts';
import { ReeveError, reason } from '../../errors.ts';
import { type CommandOptions, type Ran, runCommand, type Silence } from './command.ts';
import { layOut, type Papers, type Surrounding } from './contract.ts';
import type { ExitRules, FailureClass } from './exit-rules.ts';
import { exitCodeOf } from './leash.ts';
import { readReply } from './reply.ts';
import { type RolledBack, rollBack } from './rollback.ts';
import { Spool } from './spool.ts';
import { makeReady } from './stash.ts';
import type { Attempting } from './undo.ts';
import { judge, type Result, type Verdict } from './verdict.ts';
import { type Claimed, isPassing, type Told, type WorkClient } from './work-client.ts';

/** A lease that renews itself; the signal is aborted when it is lost. */
export interface KeptLease {
  readonly signal: AbortSignal;
  stop(): Promise<void>;
}

/** How this host runs its tasks: the same for all of them. */
export interface Manner extends Surrounding {
  readonly work: WorkClient;
  readonly clock: Clock;
  readonly keep: (held: Claimed) => KeptLease;
  readonly argv: readonly [string, ...string[]];
  /** Run before the command; what it prints is what undoes it. */
  readonly stash?: string | undefined;
  readonly rollback?: string | undefined;
  readonly rules: ExitRules;
  readonly timeoutMs?: number | undefined;
  readonly silence?: Omit<Silence, 'alarm'> | undefined;
  readonly passOn?: (task: string) => NonNullable<CommandOptions['passOn']>;
  readonly isInForeground?: boolean | undefined;
  /** Running commands are to end: they are asked to, then made to. */
  readonly told: AbortSignal;
  /** At once, and nothing is waited for. */
  readonly forced: AbortSignal;
  readonly say: (task: string, text: string) => void;
}

/** How an attempt ended. */
export interface Ending {
  readonly outcome: 'done' | 'failed' | 'dropped' | 'lost';
  readonly class?: FailureClass | undefined;
  readonly exitCode: number;
}

/** One task, from its claim to the last word about it. */
export async function attempt(held: Claimed, manner: Manner): Promise<Ending> {
  const kept = manner.keep(held);
  try {
    return await work(held, manner, kept);
  } catch (error) {
    return await blameUs(held, manner, error);
  } finally {
    await kept.stop();
  }
}

async function work(held: Claimed, manner: Manner, kept: KeptLease): Promise<Ending> {
  await using papers = await layOut(held, manner);
  const started = await insist(() => manner.work.start(held), held, manner);
  if (isOver(started)) return lost(held, manner);
  const readiness = await makeReady(held, { manner, papers, kept });
  if (readiness.outcome === 'lost') return lost(held, manner);
  if (readiness.outcome === 'unready') return notBegun(held, readiness.error, manner);
  const spool = new Spool(`${papers.stashFile}.log`);
  const ran = await run(held, { manner, papers, lost: kept.signal, spool });
  if (ran.stopped === 'lost') return lost(held, manner, exitCodeOf(ran));
  if (ran.stopped === 'told' || ran.stopped === 'forced') return await giveBack(held, { ran, manner, papers, kept });
  await handInOutput(held, { ran, spool, manner });
  const verdict = judge(ran, await readReply(papers.resultFile), manner.rules, timeoutOf(held, manner));
  // Awaited here, for the papers are thrown away when this returns.
  return await conclude(held, { verdict, ran, manner, papers, kept });
}

/** Nothing was changed, and nothing is the fault of the task: it waits for a person, or is tried again. */
async function notBegun(held: Claimed, error: string, manner: Manner): Promise<Ending> {
  const told = await insist(() => manner.work.fail(held, { class: 'infra', error }), held, manner);
  if (isOver(told)) return lost(held, manner);
  manner.say(held.task.task_id, `not begun: ${error}`);
  return { outcome: 'failed', class: 'infra', exitCode: EXIT.failed };
}

/**
 * What is short goes with the result, where there is one: of an attempt that failed all is kept. That it cannot be kept is no
 * reason to lose the work.
 */
async function handInOutput(
  { task, lease }: Claimed,
  { ran, spool, manner }: { readonly ran: Ran; readonly spool: Spool; readonly manner: Manner },
): Promise<void> {
  const whole = await spool.taken(ran.output);
  const goesWithResult = exitCodeOf(ran) === 0 && !ran.output.isTruncated;
  if (goesWithResult || whole.length === 0) return;
  const trouble = (error: unknown) => manner.say(task.task_id, `its output was not handed in: ${reason(error)}`);
  await manner.work.output({ task, lease }, whole).catch(trouble);
}

/** Something of ours is broken (a full disk, a folder that is not there): no reason to leave the task lying. */
async function blameUs(held: Claimed, { work: client, say }: Manner, thrown: unknown): Promise<Ending> {
  const error = `the worker could not go on: ${reason(thrown)}`;
  say(held.task.task_id, error);
  await client.fail(held, { class: 'infra', error }).catch((also: unknown) => say(held.task.task_id, reason(also)));
  return { outcome: 'failed', class: 'infra', exitCode: EXIT.failed };
}

interface Running {
  readonly manner: Manner;
  readonly papers: Papers;
  readonly lost: AbortSignal;
  readonly spool: Spool;
}

function run(held: Claimed, { manner, papers, lost: lostSignal, spool }: Running): Promise<Ran> {
  const { clock, argv, cwd, env, passOn, silence, told, forced, isInForeground, say } = manner;
  const { task_id: id } = held.task;
  const isOurs = passOn === undefined;
  const alarm = (quietMs: number) => {
    const text = `no output for ${Math.round(quietMs / 1000)} s`;
    say(id, text);
    manner.work.note(held, text).catch((error: unknown) => say(id, `the note was not delivered: ${reason(error)}`));
  };
  return runCommand({
    argv,
    cwd,
    env: { ...env, ...papers.env },
    clock,
    stdio: isOurs
      ? ['inherit', 'inherit', 'inherit', papers.result.fd]
      : [papers.stdin.fd, 'pipe', 'pipe', papers.result.fd],
    passOn: passOn?.(id),
    keep: (chunk) => spool.add(chunk),
    timeoutMs: timeoutOf(held, manner),
    silence: silence && { ...silence, alarm },
    stops: { lost: lostSignal, told, forced },
    isInForeground,
  });
}

interface Ended extends Attempting {
  readonly ran: Ran;
}

async function conclude(held: Claimed, ended: Ended & { readonly verdict: Verdict }): Promise<Ending> {
  const { verdict, ran, manner } = ended;
  const { work: client, say } = manner;
  const exitCode = exitCodeOf(ran);
  const { task_id: id } = held.task;
  if (verdict.outcome === 'done') {
    const told = await insist(() => completed(held, verdict.result, client), held, manner);
    if (isOver(told)) return lost(held, manner, exitCode);
    say(id, 'done');
    return { outcome: 'done', exitCode };
  }
  const back = await rollBack(held, ended);
  const { class: kind, resetsAt } = verdict;
  const error = back.says === undefined ? verdict.error : `${verdict.error}; ${back.says}`;
  const failure = { class: kind, error, resetsAt, isFinal: back.outcome === 'failed' };
  const told = await insist(() => client.fail(held, failure), held, manner);
  if (isOver(told)) return lost(held, manner, exitCode);
  say(id, `failed (${kind}): ${error}`);
  return { outcome: 'failed', class: kind, exitCode };
}

/** Nobody is to blame: back to the queue, for whoever asks next. Undone first, where there is time. */
async function giveBack(held: Claimed, ended: Ended): Promise<Ending> {
  const { ran, manner } = ended;
  const { work: client, say } = manner;
  const isForced = ran.stopped === 'forced';
  const back: RolledBack = isForced ? { outcome: 'none' } : await rollBack(held, ended);
  const why = ['its worker was told to stop', ...(back.says === undefined ? [] : [back.says])].join('; ');
  // Asked once: should it fail, the lease ends by itself soon.
  const told = await client.drop(held, why).catch(reason);
  say(held.task.task_id, told === 'heard' ? 'given back' : `not given back: ${told}`);
  return { outcome: 'dropped', exitCode: exitCodeOf(ran) };
}

function lost(held: Claimed, { say }: Manner, exitCode = 0): Ending {
  say(held.task.task_id, 'the lease was lost: the task is in other hands by now, or back in the queue');
  return { outcome: 'lost', exitCode };
}

const isOver = (told: Told): boolean => told !== 'heard';

/** A result that is refused (too long, of another form) does not undo the work: the task is done without it. */
function completed(held: Claimed, result: Result, client: WorkClient): Promise<Told> {
  return client.complete(held, result).catch((error: unknown) => {
    if (!(error instanceof ReeveError && error.row.exit === EXIT.usage)) throw error;
    return client.complete(held, { errors: [`its result was refused: ${error.message.slice(0, 500)}`] });
  });
}

/** Work of an hour is not thrown away because the daemon is being restarted: reports are repeated until answered. */
async function insist(ask: () => Promise<Told>, held: Claimed, { clock, forced, say }: Manner): Promise<Told> {
  for (let failures = 0; ; failures++) {
    try {
      return await ask();
    } catch (error) {
      if (!isPassing(error) || forced.aborted) throw error;
      if (failures === 0) say(held.task.task_id, `${reason(error)} Trying on.`);
      await clock.sleep(backOff(failures, AGAIN_MS, AGAIN_AT_MOST_MS), forced);
    }
  }
}

const AGAIN_MS = 250;
const AGAIN_AT_MOST_MS = 10_000;

/** The task's own limit, or ours, whichever is shorter. */
function timeoutOf({ task }: Claimed, { timeoutMs }: Manner): number | undefined {
  const own = task.timeout_seconds === undefined ? undefined : task.timeout_seconds * 1000;
  if (own === undefined || timeoutMs === undefined) return own ?? timeoutMs;
  return Math.min(own, timeoutMs);
}

/** For those who call it alone: a lost lease is a failure with a code. */
export const leaseLost = ({ task, lease }: Claimed): ReeveError =>
  new ReeveError('LEASE_LOST', { task: task.task_id, agent: lease.agent_id, status: 'in other hands', holder: '' });
