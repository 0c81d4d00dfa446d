import type { Ran, StopReason } from './command.ts';
import type { ExitRules, FailureClass } from './exit-rules.ts';
import { exitCodeOf } from './leash.ts';
import type { ReadReply, Reply } from './reply.ts';

export type Verdict =
  | { readonly outcome: 'done'; readonly result: Result }
  | {
      readonly outcome: 'failed';
      readonly class: FailureClass;
      readonly error: string;
      readonly result: Result;
      readonly resetsAt: number | undefined;
    };
export type Result = Readonly<Record<string, unknown>>;

/** How much of the end of the output may speak for the class of a failure. */
const LAST_CHARACTERS = 2_000;

/** The exit code decides whether it is done; what the command says about itself decides how it failed. */
export function judge(ran: Ran, read: ReadReply, rules: ExitRules, timeoutMs?: number): Verdict {
  const reply: Reply = read.outcome === 'read' ? read.reply : {};
  const complaints = read.outcome === 'unreadable' ? [`its result was not read: ${read.problem}`] : [];
  const result = resultOf(ran, reply, complaints);
  if (exitCodeOf(ran) === 0 && ran.stopped === undefined) return { outcome: 'done', result };
  const marks = ran.output.text.slice(-LAST_CHARACTERS);
  return {
    outcome: 'failed',
    class: classOf(ran, reply, rules, marks),
    error: reply.error ?? whatHappened(ran, timeoutMs),
    result,
    resetsAt: resetOf(reply, rules.quota.exec(marks)),
  };
}

/** These say how it failed, and travel with the failure. */
const ABOUT_FAILURE: ReadonlySet<string> = new Set(['error', 'class', 'resets_at']);

function resultOf(ran: Ran, reply: Reply, complaints: readonly string[]): Result {
  const { text, bytes, isTruncated } = ran.output;
  return {
    ...Object.fromEntries(Object.entries(reply).filter(([name]) => !ABOUT_FAILURE.has(name))),
    errors: [...(reply.errors ?? []), ...complaints],
    exit_code: exitCodeOf(ran),
    ...(bytes > 0 && { output: text, output_bytes: bytes, output_truncated: isTruncated }),
  };
}

function classOf(ran: Ran, reply: Reply, { codes, quota, auth }: ExitRules, marks: string): FailureClass {
  if (ran.stopped) return ran.stopped === 'timeout' ? 'timeout' : 'task';
  if (ran.problem !== undefined) return 'infra';
  const byCode = ran.code === undefined ? undefined : codes.get(ran.code);
  if (reply.class ?? byCode) return (reply.class ?? byCode) as FailureClass;
  if (quota.test(marks)) return 'quota';
  return auth.test(marks) ? 'auth' : 'task';
}

function resetOf({ resets_at }: Reply, mark: RegExpExecArray | null): number | undefined {
  if (typeof resets_at === 'number') return resets_at;
  if (resets_at !== undefined) return Math.ceil(Date.parse(resets_at) / 1000);
  const found = mark?.groups?.resets;
  return found === undefined ? undefined : Number(found);
}

function whatHappened(ran: Ran, timeoutMs = 0): string {
  const ends: Readonly<Record<StopReason, string>> = {
    timeout: `the command was ended after ${timeoutMs / 1000} s: it took too long`,
    silence: 'the command was ended: it had written nothing for too long',
    lost: 'the command was ended: its lease was lost',
    told: 'the command was ended together with its worker',
    forced: 'the command was killed together with its worker',
  };
  const how = ran.stopped ? ends[ran.stopped] : plainEnd(ran);
  const last = ran.output.text.trimEnd().split('\n').at(-1)?.slice(0, 500);
  return last ? `${how}; its last line: ${last}` : how;
}

function plainEnd({ problem, signal, code }: Ran): string {
  if (problem !== undefined) return `the command could not be started: ${problem}`;
  return signal ? `the command was killed by ${signal}` : `the command ended with exit code ${code}`;
}
