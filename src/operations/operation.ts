import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { type Actor, actAs } from '../actor.ts';
import type { ExitCode } from '../error-catalogue.ts';
import { asReeveError, type ErrorCode, ReeveError } from '../errors.ts';
import type { Caller } from '../identity/caller.ts';
import { ACCESS, type Access } from '../identity/permissions.ts';
import type { Endpoint } from '../ratelimit/endpoint-limits.ts';
import type { Rooms } from './rooms.ts';

export type { Caller } from '../identity/caller.ts';
export { ACCESS, type Access } from '../identity/permissions.ts';

export interface Context {
  readonly rooms: Rooms;
  readonly caller: Caller;
  /** Aborted when the caller goes away or the daemon drains: every wait takes it. */
  readonly signal: AbortSignal;
  /** All that can be asked here: what a briefing tells of. */
  readonly operations: readonly Operation[];
  /** Where the caller keeps the secret of its session; only browsers do. */
  readonly cookie?: Cookie;
}

export interface Cookie {
  readonly secret: string | undefined;
  keep(secret: string, seconds: number): void;
  drop(): void;
}

/** One thing that can be asked of the daemon. HTTP route, OpenAPI entry, CLI command and MCP tool come from it. */
export interface Operation {
  readonly name: string;
  /** One line, in the imperative. */
  readonly summary: string;
  readonly description?: string;
  /** Which permission it takes. Where that is granted to an agent for itself only, its input `agent` says for whom it is. */
  readonly access: Access;
  readonly input: z.ZodObject;
  readonly output: z.ZodType;
  /** Counted against the limit of this name, by caller and for all. */
  readonly limit?: Endpoint;
  /** What can go wrong besides what can always go wrong. */
  readonly errors: readonly ErrorCode[];
  readonly http: HttpForm;
  readonly cli: CliForm;
  /** The MCP tool it is offered as, if it is one that an agent needs. */
  readonly mcp?: McpForm;
  readonly run: (context: Context, input: never) => Promise<unknown>;
  /** Can be noted and done later when Redis is away. */
  readonly journal?: JournalForm;
  /** What comes after, for as long as the caller listens: server-sent events, `--follow`. */
  readonly follow?: (context: Context, input: never) => AsyncIterable<Followed>;
}

/** Asks an operation: in the daemon at once, from elsewhere over HTTP. */
export type Ask = (operation: Operation, input: unknown, signal: AbortSignal) => Promise<unknown>;

export interface JournalForm {
  /** Refusals by which one that may have been done before is known to have been. */
  readonly doneIf: readonly ErrorCode[];
}

/** The answer in place of the usual one: it is noted, and will be done. */
export interface Journalled {
  readonly journalled: true;
  readonly journal_id: string;
  readonly operation: string;
}

export const isJournalled = (output: unknown): output is Journalled =>
  typeof output === 'object' && output !== null && 'journalled' in output && output.journalled === true;

export interface Followed {
  /** Where to go on after a break: Last-Event-ID. */
  readonly cursor: string;
  readonly kind: string;
  readonly item: unknown;
}

export interface HttpForm {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Under /api/v1, unless it starts with a double slash: '//readyz' is /readyz. {names} are taken from the input. */
  readonly path: string;
  /** Takes files: its body may be longer than others. */
  readonly isLarge?: boolean;
  /** Headers that fill an input: { 'if-match': 'if_match' }. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Which of `answers` an output is. Default 200. */
  readonly status?: (output: never) => number;
  /** The statuses it may answer with when nothing went wrong, and what each means. 204 has no body. */
  readonly answers?: Readonly<Record<number, string>>;
}

export interface CliForm {
  /** 'task list': the words after `reeve`. */
  readonly words: string;
  /** Inputs given by position rather than by flag. */
  readonly args?: readonly string[];
  readonly examples: readonly string[];
  /** How people see it, if the general table or list of facts does not do: a file in cli/views. */
  readonly view?: string;
  /** Columns of a list, most telling first. */
  readonly columns?: readonly string[];
  /** Answered by a file in cli/commands, which may not need a daemon. */
  readonly local?: string;
  /** Flags that only the command line knows, for a local one: name (`file=path` if it takes a word) and meaning. */
  readonly switches?: Readonly<Record<string, string>>;
  /** Takes every setting as a flag. Default: what is local does. */
  readonly takesSettings?: boolean;
  /** Exit codes with a meaning of their own, besides those of its errors. */
  readonly exits?: readonly ExitCode[];
  /** May be repeated until interrupted: --watch. */
  readonly watch?: boolean;
}

export interface McpForm {
  /** One of MCP_TOOLS: assets must not be called so. */
  readonly tool: string;
  readonly description: string;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
  readonly destructive?: boolean;
  /** What a model leaves out and had better not: used unless it says otherwise. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** The most a model may ask for: clients of the protocol give up on a tool that takes much longer. */
  readonly most?: Readonly<Record<string, number>>;
}

/** Rooms give out data that nobody may change; the output schema only reads it. */
type Answer<T> = T extends object ? { readonly [K in keyof T]: Answer<T[K]> } : T;

type Definition<I extends z.ZodObject, O extends z.ZodType> = Omit<
  Operation,
  'input' | 'output' | 'run' | 'follow' | 'http'
> & {
  readonly input: I;
  readonly output: O;
  readonly http: Omit<HttpForm, 'status'> & { readonly status?: (output: z.output<O>) => number };
  readonly run: (context: Context, input: z.output<I>) => Promise<Answer<z.input<O>>>;
  readonly follow?: (context: Context, input: z.output<I>) => AsyncIterable<Followed>;
};

/**
 * Keeps the types of input and output where an operation is written; the doors need only the general form.
 * An input that nobody declared is refused: a misspelt filter must not mean "everything".
 */
export const defineOperation = <I extends z.ZodObject, O extends z.ZodType>(
  definition: Definition<I, O>,
): Operation => ({
  ...definition,
  input: definition.input.strict(),
});

/** The one way into an operation, whatever the door: access, input, run, output. */
export async function invoke(operation: Operation, context: Context, raw: unknown): Promise<unknown> {
  const input = admit(operation, context, raw);
  try {
    if (operation.limit) await context.rooms.limits.admit(operation.limit, context.caller.id);
    return await execute(operation, context, input);
  } catch (thrown) {
    const error = context.rooms.explain(thrown) ?? asReeveError(thrown);
    const noted = await note(operation, context, input, error);
    if (noted) return noted;
    throw error;
  }
}

/** Runs it, on behalf of the caller. Whether the caller may was asked before. */
export async function execute(operation: Operation, context: Context, input: never): Promise<unknown> {
  return operation.output.parse(
    await actAs(actorOf(operation, context.caller, input), () => operation.run(context, input)),
  );
}

/** While Redis is away, what can wait is written down, whatever the door. */
async function note(
  operation: Operation,
  { rooms, caller }: Context,
  input: unknown,
  { code }: ReeveError,
): Promise<Journalled | undefined> {
  const isAway = code === 'REDIS_UNAVAILABLE' || code === 'REDIS_REPLY_UNKNOWN';
  if (!operation.journal || !isAway) return undefined;
  const isUncertain = code === 'REDIS_REPLY_UNKNOWN';
  const wish = { operation: operation.name, caller: callerText(caller), input, isUncertain };
  const id = await rooms.journal.note(wish);
  return id === undefined ? undefined : { journalled: true, journal_id: id, operation: operation.name };
}

/** Only what decides and what the audit names. */
const callerText = ({ access, own = new Set(), ...caller }: Caller): string =>
  JSON.stringify({ ...caller, access: [...access], own: [...own] });

/** The same for what goes on: refused at once, before anything is sent, if access or input are wrong. */
export function follow(operation: Operation, context: Context, raw: unknown): AsyncIterable<Followed> | undefined {
  return operation.follow?.(context, admit(operation, context, raw));
}

/** Permission first, so that one who may not ask learns nothing of what could be asked; for whom it is, the input says. */
function admit(operation: Operation, { caller }: Context, raw: unknown): never {
  const { name, access, cli } = operation;
  const isOwn = access !== 'open' && !caller.access.has(access);
  if (isOwn && !caller.own?.has(access)) {
    throw denied(caller, `${name} needs the right "${access}" (${ACCESS[access]})`);
  }
  // One that may speak only for itself need not say so.
  const meant = isOwn && 'agent' in operation.input.shape ? { agent: caller.id, ...(raw as object) } : raw;
  const input = operation.input.safeParse(meant);
  if (!input.success) {
    throw new ReeveError('INVALID_INPUT', { operation: name, command: cli.words, problem: explain(input.error) });
  }
  if (isOwn && input.data.agent !== caller.id) {
    throw denied(caller, `${name} is for the agent ${String(input.data.agent)}, and it may speak only for itself`);
  }
  return input.data as never;
}

const denied = ({ id }: Caller, why: string) => new ReeveError('DENIED', { caller: id, why });

/** What audit rows say of whoever is behind a change; the reason and ticket that a caller gave count for all of them. */
function actorOf({ name }: Operation, caller: Caller, input: Readonly<Record<string, unknown>>): Actor {
  const { id: user, session, door, ip, userAgent: user_agent } = caller;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  const [reason, ticket] = [text(input.reason), text(input.ticket)];
  return { user, session, door, ip, user_agent, operation: name, reason, ticket, cmd_id: randomUUID() };
}

/** All that is wrong, on one line: 'limit: too big; kind: …'. */
const explain = (error: z.ZodError): string =>
  error.issues
    .map(({ path, message }) => {
      const says = message.endsWith('received undefined') ? 'is missing' : message;
      return path.length > 0 ? `${path.join('.')}: ${says}` : says;
    })
    .join('; ');
