import type { ReeveEvent } from '../events/catalogue.ts';

/** Who should hear of something: a person, everybody with a role, or whoever is on call (by the name that is set for that). */
export type Audience = { readonly user: string } | { readonly role: string } | { readonly onCall: string };

/** What a person is told, in one sentence, and what to do about it. */
export interface Notice {
  readonly to: readonly Audience[];
  readonly text: string;
  readonly next?: string;
}

/** What the event itself does not say about its task. */
export interface TaskFacts {
  readonly title?: string | undefined;
  readonly author?: string | undefined;
}

/** What whom is told of an event; undefined if nobody needs to hear of it. */
export function noticeOf({ event, payload }: ReeveEvent, task: TaskFacts): Notice | undefined {
  const say = (NOTICES as Readonly<Record<string, Say>>)[event];
  const said = say?.(facts(payload, task));
  return said && said.to.length > 0 ? said : undefined;
}

/** Whether people are told of such an event at all. */
export const isNoticed = (event: string): boolean => event in NOTICES;

type Say = (of: Facts) => Notice | undefined;

/** The payload as texts, for sentences. What is not there is empty. */
interface Facts {
  readonly get: (name: string) => string;
  /** 'T-1 (Move the tables)'. */
  readonly task: string;
  readonly author: readonly Audience[];
  readonly user: (name: string) => readonly Audience[];
  readonly onCall: readonly Audience[];
}

function facts(payload: Readonly<Record<string, unknown>>, { title, author }: TaskFacts): Facts {
  const get = (name: string) => {
    const value = payload[name];
    return typeof value === 'string' || typeof value === 'number' ? oneLine(String(value)) : '';
  };
  const user = (name: string) => (get(name) === '' ? [] : [{ user: get(name) }]);
  return {
    get,
    task: title ? `${get('task_id')} (${oneLine(title)})` : get('task_id'),
    author: author && !NOBODY.includes(author) ? [{ user: author }] : [],
    user,
    onCall: [{ onCall: get('on_call') }],
  };
}

/** Authors that are no people: the daemon, and the file of tasks. */
const NOBODY = ['system', 'prd'];

/** What others wrote goes into a sentence: on one line, and not longer than one reads. */
const oneLine = (text: string): string => {
  const flat = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
  return flat.length > LONGEST ? `${flat.slice(0, LONGEST)}…` : flat;
};
const LONGEST = 300;

const showing = (f: Facts) => `reeve approval show ${f.get('approval_id')}`;
const because = (f: Facts, name = 'because') => (f.get(name) === '' ? '' : `: ${f.get(name)}`);
const ADMINS = { role: 'admin' } as const;

/** Every event of which people are told, to whom it goes and what it says. */
const NOTICES = {
  'approval:requested': (f) => ({
    to: f.user('reviewer'),
    text: `Your approval is wanted for ${f.task}, risk ${f.get('risk')}, until ${f.get('due_at')}.`,
    next: showing(f),
  }),
  'approval:reminder': (f) => ({
    to: f.user('reviewer'),
    text: `${f.task} still waits for your answer, until ${f.get('due_at')}.`,
    next: showing(f),
  }),
  'approval:delegated': (f) => ({
    to: f.user('to'),
    text: `${f.get('reviewer')} passed ${f.task} on to you: your approval is wanted.`,
    next: showing(f),
  }),
  'approval:reassigned': (f) => ({
    to: [...f.user('to'), ...f.user('reviewer')],
    text: `${f.task} goes from ${f.get('reviewer')} to ${f.get('to')}${because(f)}`,
    next: showing(f),
  }),
  'approval:escalated': (f) => ({
    to: [...f.user('to'), ...f.user('reviewer'), ...f.onCall],
    text: `${f.get('reviewer')} did not answer about ${f.task} in time; ${f.get('to') || 'the next level'} is asked now.`,
    next: showing(f),
  }),
  'approval:exhausted': (f) => ({
    to: [...f.onCall, ADMINS],
    text: `Nobody is left who could answer about ${f.task}${because(f)}`,
    next: showing(f),
  }),
  'approval:resolved': (f) => ({
    to: f.user('reviewer'),
    text: `You need not answer about ${f.task} any more${because(f)}${f.get('by') === '' ? '' : ` (${f.get('by')})`}.`,
  }),
  'approval:approved': (f) => ({
    to: f.author,
    text: `${f.get('reviewer')} agreed to ${f.task}${because(f, 'reason')}`,
  }),
  'approval:rejected': (f) => ({ to: f.author, text: `${f.get('reviewer')} refused ${f.task}${because(f, 'reason')}` }),
  'approval:changes_requested': (f) => ({
    to: f.author,
    text: `${f.get('reviewer')} wants ${f.task} changed${because(f, 'reason')}`,
    next: `reeve task edit ${f.get('task_id')}`,
  }),
  'approval:withdrawn': (f) => ({
    to: f.author,
    text: `${f.get('reviewer')} took back the approval of ${f.task}${because(f, 'reason')}`,
  }),
  'approval:backlog': (f) => ({
    to: [...f.onCall, ADMINS],
    text: `${f.get('open')} approvals wait, more than ${f.get('limit')}.`,
    next: 'reeve approval list',
  }),
  'task:approved': (f) => ({ to: f.author, text: `${f.task} has all the approvals it needs.` }),
  'task:completed': (f) => ({ to: f.author, text: `${f.task} is done.` }),
  'task:state_changed': (f) =>
    f.get('to') === 'CANCELLED'
      ? {
          to: f.author,
          text: `${f.task} ended without being done.`,
          next: `reeve why ${f.get('task_id')}`,
        }
      : undefined,
  'task:override_asked': (f) => ({
    to: [ADMINS],
    text: `${f.get('by')} wants ${f.task} to pass in spite of the gate (${f.get('ticket')})${because(f, 'reason')} A second admin must agree.`,
    next: `reeve task show ${f.get('task_id')}`,
  }),
  'task:forced': (f) => ({
    to: [ADMINS, ...f.author],
    text: `${f.get('first')} and ${f.get('second')} let ${f.task} pass in spite of the gate (${f.get('ticket')}).`,
  }),
  'lock:queue_full': (f) => ({
    to: [...f.onCall, ADMINS],
    text: `${f.get('depth')} wait for the lock ${f.get('lock')}: ${f.get('agent_id')} was turned away.`,
    next: `reeve why ${f.get('lock')}`,
  }),
  'lock:deadlock': (f) => ({
    to: [ADMINS],
    text: `Agents waited for one another in a circle; ${f.get('agent_id')} gave up ${f.get('lock')}.`,
    next: 'reeve lock deadlocks',
  }),
  'webhook:disabled': (f) => ({
    to: [ADMINS],
    text: `The webhook ${f.get('webhook_id')} to ${f.get('host')} is told nothing more${because(f)}`,
    next: `reeve webhook update ${f.get('webhook_id')} --active`,
  }),
} as const satisfies Record<string, Say>;
