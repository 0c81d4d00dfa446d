import { z } from 'zod';
import { EXIT } from '../../error-catalogue.ts';
import { asReeveError, ReeveError } from '../../errors.ts';
import type { Client } from '../client.ts';
import { partsOf } from '../parts.ts';
import type { FailureClass } from './exit-rules.ts';

/** What the daemon hands out: the answer of a claim, and what a command finds on its standard input. */
const claimedSchema = z.looseObject({
  task: z.looseObject({
    task_id: z.string(),
    title: z.string().default(''),
    timeout_seconds: z.number().optional(),
    rollback_strategy: z.enum(['automatic', 'manual', 'none']).catch('none'),
  }),
  lease: z.looseObject({
    lock_id: z.string(),
    fencing_token: z.coerce.string(),
    agent_id: z.string(),
    acquired_at: z.string(),
    expires_at: z.string(),
    lease_class: z.enum(['process', 'agent']),
    attempt: z.number().default(1),
  }),
});
export type Claimed = z.output<typeof claimedSchema>;

/** What the daemon made of a report. Late: the lease was over, and what was said is kept but does not count. */
export type Told = 'heard' | 'late' | 'unknown';

export interface AgentCard {
  readonly agent: string;
  readonly type?: string | undefined;
  /** Without it, what is known of the agent counts. */
  readonly capabilities?: readonly string[] | undefined;
  readonly concurrency: number;
}

export interface ClaimWish {
  readonly lockId: string;
  readonly leaseClass: 'process' | 'agent';
  readonly waitSeconds: number;
  /** This one and no other. */
  readonly task?: string | undefined;
}

export interface FailureReport {
  readonly class: FailureClass;
  readonly error: string;
  /** On quota: when it is there again, as seconds since 1970. */
  readonly resetsAt?: number | undefined;
  /** Another try would make it worse. */
  readonly isFinal?: boolean | undefined;
}

/** What an agent says to the daemon. The names of routes and fields are here and nowhere else in the agent host. */
export interface WorkClient {
  register(card: AgentCard): Promise<void>;
  /** Undefined: nothing to do so far. */
  claim(card: AgentCard, wish: ClaimWish, signal: AbortSignal): Promise<Claimed | undefined>;
  /** It ends, and looks for no more work. */
  finish(card: AgentCard, signal: AbortSignal): Promise<void>;
  start(held: Claimed): Promise<Told>;
  beat(held: Claimed, signal: AbortSignal): Promise<Told>;
  note(held: Claimed, text: string): Promise<Told>;
  complete(held: Claimed, result: Readonly<Record<string, unknown>>): Promise<Told>;
  fail(held: Claimed, failure: FailureReport): Promise<Told>;
  drop(held: Claimed, reason: string): Promise<Told>;
  /** Saves what undoes the attempt. Stands: an earlier one was not undone. */
  stash(held: Claimed, bytes: Buffer, command: string | undefined): Promise<Told | 'stands'>;
  output(held: Claimed, bytes: Buffer): Promise<Told>;
  rolledBack(held: Claimed, outcome: 'done' | 'failed' | 'manual', reason: string): Promise<Told>;
  /** What an earlier attempt saved and nobody used; undefined: there is nothing to undo. */
  owedStash(held: Claimed): Promise<AsyncIterable<Buffer> | undefined>;
  /** What this attempt saved. */
  savedStash(held: Claimed): Promise<AsyncIterable<Buffer> | undefined>;
}

/** The daemon is looked for at each call: one that was started again may listen elsewhere. */
export function createWorkClient(find: () => Promise<Client>): WorkClient {
  const post = async (path: string, input: Readonly<Record<string, unknown>>, signal?: AbortSignal) =>
    (await find()).ask({ method: 'POST', path, input: defined(input), signal });
  const say = (verb: string, held: Claimed, more: Readonly<Record<string, unknown>> = {}, signal?: AbortSignal) => {
    const answered = post(`/tasks/{task}/${verb}`, { ...named(held), ...more }, signal);
    return answered.then((): Told => 'heard').catch(refusal);
  };
  const saved = async (held: Claimed, isMeant: (execution: z.output<typeof executionSchema>) => boolean) => {
    const client = await find();
    const { task_id: task } = held.task;
    const { answer } = await client.ask({ method: 'GET', path: '/tasks/{task}/execution', input: { task } });
    const input = { task, agent: held.lease.agent_id };
    return isMeant(executionSchema.parse(answer)) ? partsOf(client, { path: '/tasks/{task}/stash', input }) : undefined;
  };
  return {
    register: async ({ agent, type, capabilities, concurrency }) => {
      await post('/agents', { agent, type, capabilities, max_tasks: concurrency });
    },
    claim: async ({ agent, type, capabilities }, wish, signal) => {
      const input = {
        agent,
        type,
        capabilities,
        wait: wish.waitSeconds,
        lease_class: wish.leaseClass,
        lock_id: wish.lockId,
        task: wish.task,
      };
      const { answer, status } = await post('/agents/{agent}/claim', input, signal);
      return status === 204 ? undefined : claimedSchema.parse(answer);
    },
    finish: async ({ agent }, signal) => {
      await post('/agents/{agent}/heartbeat', { agent, finished: true }, signal);
    },
    start: (held) => say('start', held),
    beat: (held, signal) => say('heartbeat', held, {}, signal),
    note: (held, text) => say('note', held, { note: text }),
    complete: (held, result) => say('complete', held, { result }),
    fail: (held, { class: kind, error, resetsAt, isFinal }) =>
      say('fail', held, {
        class: kind,
        error: error.slice(0, LONGEST_ERROR),
        until: isoOf(resetsAt),
        final: isFinal,
      }),
    drop: (held, reason) => say('drop', held, { reason }),
    stash: (held, bytes, command) => {
      const data = { encoding: 'base64', data: bytes.toString('base64') };
      return post('/tasks/{task}/stash', { ...named(held), ...data, command })
        .then((): Told => 'heard')
        .catch((error: unknown) => (isStanding(error) ? 'stands' : refusal(error)));
    },
    output: (held, bytes) => say('output', held, { encoding: 'base64', data: bytes.toString('base64') }),
    rolledBack: (held, outcome, reason) =>
      say('rolled-back', held, { outcome, reason: reason.slice(0, LONGEST_REASON) }),
    owedStash: (held) => saved(held, ({ is_rollback_owed }) => is_rollback_owed),
    savedStash: (held) => saved(held, ({ stash_token }) => stash_token === held.lease.fencing_token),
  };
}

/** Whether asking again may help: the daemon, or what it stands on, is away, or there is a pause. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ReeveError && (error.row.exit === EXIT.unavailable || PASSING.has(error.row.actor));
const PASSING: ReadonlySet<string> = new Set(['retry', 'wait']);
const LONGEST_ERROR = 20_000;
const LONGEST_REASON = 2_000;
const executionSchema = z.looseObject({ is_rollback_owed: z.boolean(), stash_token: z.string().optional() });
const isStanding = (error: unknown): boolean => error instanceof ReeveError && error.code === 'STASH_STANDS';

/** That the lease is over is an answer, too; everything else remains a failure. */
function refusal(thrown: unknown): Told {
  const { row } = asReeveError(thrown);
  if (row.exit === EXIT.conflict) return 'late';
  if (row.exit === EXIT.notFound) return 'unknown';
  throw thrown;
}

const named = ({ task, lease }: Claimed) => ({
  task: task.task_id,
  agent: lease.agent_id,
  lock_id: lease.lock_id,
  fencing_token: lease.fencing_token,
});

const isoOf = (seconds: number | undefined) =>
  seconds === undefined ? undefined : new Date(seconds * 1000).toISOString();

const defined = (input: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
