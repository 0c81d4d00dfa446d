import { z } from 'zod';
import { ReeveError } from '../errors.ts';
import { KEY_TABLE } from './key-table.ts';

/**
 * What may stand in a key, one rule per variable of the key table. No id contains `:`, `{` or `}`, so a key falls apart
 * into its parts in one way only; a word that stands in a key where another key has an id is reserved.
 */
export interface IdRule {
  /** The form as the source of a regular expression, without anchors. */
  readonly form: string;
  /** The form in words, for people whose id was refused. */
  readonly says: string;
  readonly maxLength?: number;
  /** A closed list; the only values there are. */
  readonly words?: readonly string[];
  readonly reserved?: ReadonlySet<string>;
  /** The id is the percent-encoded form of a text that may be anything, e.g. a path. */
  readonly encoded?: true;
}

const PLAIN = '[A-Za-z0-9][A-Za-z0-9._-]{0,127}';
const ENCODED = '(?:[A-Za-z0-9]|%[0-9A-F]{2})(?:[A-Za-z0-9._-]|%[0-9A-F]{2})*';

/** Ids become names of properties, too. */
const PROPERTY_WORDS = ['prototype', ...Object.getOwnPropertyNames(Object.prototype)].filter((word) => word[0] !== '_');

/** Refused everywhere, also where no row needs it: as ids they would confuse every log, and later rows may want them. */
const HOUSE_WORDS = ['index', 'registry', 'queue', 'global', 'waitfor', 'deadlock'];

const PLAIN_KINDS = ['task', 'agent', 'user', 'approval', 'policy', 'session', 'job', 'agentType'] as const;

/** One list for all plain ids, so that people have one rule to remember. */
export const RESERVED_IDS: ReadonlySet<string> = new Set([
  ...HOUSE_WORDS,
  ...PROPERTY_WORDS,
  ...PLAIN_KINDS.flatMap(wordsBeside),
]);
export const RESERVED_PROJECTS: ReadonlySet<string> = new Set([...PROPERTY_WORDS, ...wordsBeside('project')]);

const plain: IdRule = {
  form: PLAIN,
  says: 'letters, digits, ".", "_" and "-", the first a letter or digit, at most 128 of them, and no reserved word',
  reserved: RESERVED_IDS,
};
const slug = (max: number, reserved?: ReadonlySet<string>): IdRule => ({
  form: `[A-Za-z0-9][A-Za-z0-9_-]{0,${max - 1}}`,
  says: `letters, digits, "_" and "-", the first a letter or digit, at most ${max} of them${reserved ? ', and no reserved word' : ''}`,
  ...(reserved && { reserved }),
});
const oneOf = (...words: readonly string[]): IdRule => ({
  form: words.join('|'),
  says: `one of ${words.join(', ')}`,
  words,
});
const encoded = (maxLength: number): IdRule => ({
  form: ENCODED,
  says: `text without control characters, percent-encoded, at most ${maxLength} characters in that form`,
  maxLength,
  encoded: true,
});

export const ID_RULES = {
  task: plain,
  agent: plain,
  user: plain,
  policy: plain,
  session: plain,
  job: plain,
  agentType: plain,
  // Room for the longest task id and a number; see approvalId().
  approval: { ...plain, form: '[A-Za-z0-9][A-Za-z0-9._-]{0,143}', says: plain.says.replace('128', '144') },
  asset: slug(128, new Set(PROPERTY_WORDS)),
  project: slug(64, RESERVED_PROJECTS),
  namespace: slug(64, new Set(PROPERTY_WORDS)),
  resourceType: slug(64),
  resource: encoded(1024),
  tag: encoded(384),
  word: encoded(384),
  flag: { form: '[a-z][a-z0-9_]{0,63}', says: 'lower-case letters, digits and "_", the first a letter, at most 64' },
  day: { form: '[0-9]{4}-[0-9]{2}-[0-9]{2}', says: 'a UTC day such as 2026-03-18' },
  generation: { form: '[1-9][0-9]{0,15}', says: 'a whole number above 0' },
  blob: { form: '[0-9a-f]{64}|[0-9a-f]{40}', says: 'a Git object id: 40 or 64 lower-case hexadecimal digits' },
  version: { form: '[0-9A-Za-z][0-9A-Za-z.+-]{0,127}', says: 'a semantic version of at most 128 characters' },
  delivery: { form: '[A-Za-z0-9][A-Za-z0-9-]{0,63}', says: 'letters, digits and "-", at most 64' },
  category: oneOf('tool', 'prompt', 'skill'),
  state: oneOf('DRAFT', 'SUBMITTED', 'REVIEWING', 'APPROVED', 'APPLYING', 'COMPLETED', 'REJECTED', 'CANCELLED'),
  eventType: oneOf('task', 'approval', 'lock'),
  jobQueue: oneOf('lock_cleanup', 'approval_timeout', 'task_timeout', 'deadlock_detect', 'archive'),
  endpoint: oneOf('tasks:create', 'approvals:respond'),
  config: oneOf(
    'lock:default_ttl',
    'lock:max_ttl',
    'lock:heartbeat_interval',
    'approval:default_timeout',
    'approval:max_timeout',
    'approval:reminders',
    'approval:on_call',
    'approval:backlog',
    'task:default_timeout',
    'risk:thresholds',
  ),
} as const satisfies Record<string, IdRule>;

export type IdKind = keyof typeof ID_RULES;
export type EncodedKind = 'resource' | 'tag' | 'word';

declare const kindOf: unique symbol;
/** An id that has been checked. */
export type Id<K extends IdKind> = string & { readonly [kindOf]: K };
/** What a function takes that checks for itself: a checked id of this kind or any plain string, but no id of another kind. */
export type Unchecked<K extends IdKind> = string & { readonly [kindOf]?: K };

export type TaskId = Id<'task'>;
export type AgentId = Id<'agent'>;
export type UserId = Id<'user'>;
export type ApprovalId = Id<'approval'>;
export type AssetId = Id<'asset'>;
export type ProjectId = Id<'project'>;
export type ResourceType = Id<'resourceType'>;
export type ResourceId = Id<'resource'>;

const FORMS = Object.fromEntries(
  Object.entries(ID_RULES).map(([kind, { form }]) => [kind, new RegExp(`^(?:${form})$`)]),
) as Record<IdKind, RegExp>;

export function isId<K extends IdKind>(kind: K, value: unknown): value is Id<K> {
  if (typeof value !== 'string' || !FORMS[kind].test(value)) return false;
  const rule: IdRule = ID_RULES[kind];
  if (rule.maxLength !== undefined && value.length > rule.maxLength) return false;
  if (rule.reserved?.has(value)) return false;
  // One spelling per text: %41 for A, or %2f for %2F, would be a second key for the same thing.
  return !rule.encoded || percentEncode(decoded(value)) === value;
}

/** The value as an id of its kind, or INVALID_ID. */
export function parseId<K extends IdKind>(kind: K, value: unknown): Id<K> {
  if (isId(kind, value)) return value;
  throw invalidId(kind, value);
}

/** Any text as an id: letters, digits, `.`, `_`, `-` stay, the rest becomes %XX. Different texts give different ids. */
export function encodeId<K extends EncodedKind>(kind: K, text: string): Id<K> {
  const id = percentEncode(text);
  if (id !== undefined && isId(kind, id)) return id;
  throw invalidId(kind, text);
}

/** The text that encodeId() was given. */
export const decodeId = (id: Id<EncodedKind>): string => decodeURIComponent(id);

/** A schema for operations. Kinds that are encoded take the text as people write it and give the id. */
export function idSchema<K extends IdKind>(kind: K): z.ZodType<Id<K>, string> {
  const rule: IdRule = ID_RULES[kind];
  const schema: z.ZodType<unknown, string> = rule.encoded
    ? encodingSchema(kind as EncodedKind, rule)
    : plainSchema(kind, rule);
  return schema as z.ZodType<Id<K>, string>;
}

export const DEFAULT_PROJECT = 'odyssey';

/** The id of a project's task among all tasks. Project names have no dot, so its first dot ends the project. */
export function adeTaskId(project: Unchecked<'project'>, task: Unchecked<'task'>): TaskId {
  parseId('project', project);
  parseId('task', task);
  return project === DEFAULT_PROJECT ? parseId('task', task) : parseId('task', `${project}.${task}`);
}

/** The reverse of adeTaskId(), given which projects there are: a dot alone may as well belong to the task's own id. */
export function splitAdeTaskId(
  id: Unchecked<'task'>,
  projects: readonly string[],
): { project: ProjectId; task: TaskId } {
  const dot = id.indexOf('.');
  const head = id.slice(0, Math.max(dot, 0));
  const isForeign = head !== DEFAULT_PROJECT && projects.includes(head);
  return isForeign
    ? { project: parseId('project', head), task: parseId('task', id.slice(dot + 1)) }
    : { project: parseId('project', DEFAULT_PROJECT), task: parseId('task', id) };
}

/** The id of a task's nth approval request: it names its task, so that in Cluster mode the id alone finds the slot. */
export function approvalId(task: Unchecked<'task'>, number: number): ApprovalId {
  const id = `${parseId('task', task)}.${number}`;
  if (!Number.isSafeInteger(number) || number < 0) throw invalidId('approval', id);
  return parseId('approval', id);
}

export function invalidId(kind: IdKind, value: unknown): ReeveError {
  // Quoted and cut: a refused id may hold anything, and this goes into logs and answers.
  const shown =
    typeof value === 'string' ? JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value) : typeof value;
  const words = kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return new ReeveError('INVALID_ID', { kind: words, value: shown, rule: ID_RULES[kind].says });
}

function plainSchema(kind: IdKind, rule: IdRule) {
  if (rule.words) return z.enum([...rule.words]).describe(rule.says);
  return z
    .string()
    .regex(FORMS[kind], rule.says)
    .refine((value) => !rule.reserved?.has(value), 'this word is reserved')
    .describe(rule.says);
}

function encodingSchema(kind: EncodedKind, rule: IdRule) {
  return z
    .string()
    .min(1)
    .transform((text, context) => {
      const id = percentEncode(text);
      if (id !== undefined && isId(kind, id)) return id;
      context.addIssue({ code: 'custom', message: rule.says });
      return z.NEVER;
    });
}

const HIDDEN = /\p{Cc}/u;
const percent = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Undefined for what has no place in a name: control characters, and halves of surrogate pairs. */
function percentEncode(text: string | undefined): string | undefined {
  if (text === undefined || HIDDEN.test(text) || !text.isWellFormed()) return undefined;
  return encodeURIComponent(text).replace(/[!~*'()]|^[._-]/g, percent);
}

function decoded(id: string): string | undefined {
  try {
    return decodeURIComponent(id);
  } catch {
    return undefined;
  }
}

/** The words that stand, in some row, where a row with the same beginning has a variable of this kind. */
function wordsBeside(kind: string): string[] {
  const rows = Object.values(KEY_TABLE).map(({ pattern }) => pattern.split(':'));
  const isVariable = (segment: string) => segment.startsWith('<');
  const beginning = (segments: readonly string[], length: number) =>
    segments
      .slice(0, length)
      .map((segment) => (isVariable(segment) ? '<>' : segment))
      .join(':');
  const places = new Set(
    rows.flatMap((row) => row.flatMap((segment, at) => (segment === `<${kind}>` ? [beginning(row, at)] : []))),
  );
  return rows.flatMap((row) => row.filter((segment, at) => !isVariable(segment) && places.has(beginning(row, at))));
}
