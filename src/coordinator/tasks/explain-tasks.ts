import type { Action, Explainer, Explanation, Hold } from '../../hold.ts';
import { isId } from '../../redis/ids.ts';
import type { PauseOf } from './pauses.ts';
import type { Staffing } from './staffing.ts';
import { pausedWhat, type TaskDetail } from './task-view.ts';
import type { Tasks } from './tasks.ts';

/** Why a task does not go on. Takes its plain id; `task:ID` is the name of its lock, and the locks answer to that. */
export const explainTasks =
  (tasks: Tasks, staffing: Staffing): Explainer =>
  async (ref) => {
    if (!isId('task', ref)) return undefined;
    const detail = await tasks.views.detail(ref);
    if (!detail) return undefined;
    const isReady = detail.station === 'ready' && !detail.parked_on;
    const missing = isReady ? await staffing.missingFor(detail.task) : undefined;
    const pauses = detail.paused_by ? await tasks.pauses.list() : [];
    const own = pauses.filter(({ what }) => what === detail.paused_by);
    return explanation(detail, [...own.map((one) => pausedHold(detail, one)), ...unservedHold(detail, missing)]);
  };

function explanation(detail: TaskDetail, more: readonly Hold[]): Explanation {
  const holds = [...holdsOf(detail), ...more];
  return {
    subject: detail.task_id,
    state: detail.station,
    says: holds[0]?.because ?? plainly(detail),
    holds,
    upstream: detail.waits_for.length > 0 ? detail.waits_for : detail.parked_on ? [detail.parked_on] : [],
  };
}

function plainly({ task_id, station, agent_id, claimed_at }: TaskDetail): string {
  switch (station) {
    case 'ready':
      return `${task_id} is ready; the next agent that fits gets it.`;
    case 'working':
      return `${agent_id ?? 'somebody'} has worked on ${task_id} since ${claimed_at}.`;
    case 'done':
      return `${task_id} is done.`;
    default:
      return `${task_id} is ${station}.`;
  }
}

function pausedHold({ task_id: subject }: TaskDetail, { what, pause }: PauseOf): Hold {
  const { by, at, reason, ends = 0 } = pause;
  return {
    kind: 'paused',
    subject,
    ...(by && { holder: by }),
    ...(at && { since: at }),
    clears_at: ends > 0 ? new Date(ends * 1000).toISOString() : null,
    because: `${subject} could be worked on, but ${pausedWhat(what)}${by ? ` by ${by}` : ''}${reason ? `: ${reason}` : ''}.`,
    actions: [
      { label: 'Go on', command: `reeve resume ${what}`, method: 'POST', url: '/api/v1/resume', allowed: true },
    ],
  };
}

function unservedHold({ task_id: subject }: TaskDetail, missing: string | undefined): Hold[] {
  if (missing === undefined) return [];
  const because = `${subject} is ready, but no live agent can take it: it wants ${missing}.`;
  const command = 'reeve agent list';
  const look = { label: 'See who is there', command, method: 'GET', url: '/api/v1/agents', allowed: true };
  return [{ kind: 'capacity', subject, clears_at: null, because, actions: [look] }];
}

function holdsOf(detail: TaskDetail): Hold[] {
  const { task_id: subject, quarantine, is_to_undo, waits_for, parked_on, paused_by, delayed_until } = detail;
  const { station, because, agent_id } = detail;
  const hold = (kind: Hold['kind'], text: string, more: Partial<Hold> = {}): Hold => ({
    kind,
    subject,
    clears_at: null,
    because: text,
    actions: actionsFor(detail, more.holder),
    ...more,
  });
  const holds: Hold[] = [];
  if (quarantine) holds.push(hold('inconsistent', `${subject} must not start: ${quarantine}.`));
  if (is_to_undo) {
    const text = `${subject} has to be rolled back by a person before it goes on: ${because ?? 'it was not finished'}.`;
    holds.push(hold('policy', text, { actions: [undoing(subject)] }));
  }
  if (waits_for.length > 0) {
    const names = waits_for.slice(0, 5).join(', ') + (waits_for.length > 5 ? ` and ${waits_for.length - 5} more` : '');
    holds.push(hold('dependency', `${subject} waits for ${names}.`, { holder: waits_for[0] }));
  }
  if (parked_on) {
    const text = `${subject} works on the same things as ${parked_on}, which is being worked on.`;
    holds.push(hold('lock', text, { holder: parked_on }));
  }
  if (delayed_until && station === 'waiting') {
    const text = `${subject} is tried again at ${delayed_until}${because ? `, after: ${because}` : ''}.`;
    holds.push(hold('backoff', text, { clears_at: delayed_until }));
  }
  if (station === 'failed') holds.push(hold('inconsistent', `${subject} failed: ${because ?? 'no reason given'}.`));
  if (station === 'cancelled')
    holds.push(hold('policy', `${subject} was called off: ${because ?? 'no reason given'}.`));
  if (station === 'waiting' && !paused_by && holds.length === 0) {
    holds.push(hold('paused', `${subject} waits: ${because ?? 'a person or a pause holds it'}.`));
  }
  if (station === 'working') {
    holds.push(hold('lock', plainly(detail), { ...(agent_id && { holder: agent_id }) }));
  }
  return holds;
}

const undoing = (task: string): Action => ({
  label: 'Roll it back',
  command: `reeve task rollback ${task}`,
  method: 'POST',
  url: `/api/v1/tasks/${task}/rollback`,
  allowed: true,
});

/** What helps first: a look at what it waits for, where that is a task. */
function actionsFor({ task_id, station, delayed_until, waits_for, parked_on }: TaskDetail, holder?: string): Action[] {
  const act = (label: string, command: string, verb: string): Action => ({
    label,
    command,
    method: 'POST',
    url: `/api/v1/tasks/${task_id}/${verb}`,
    allowed: true,
  });
  const retry = act('Try it again', `reeve task retry ${task_id}`, 'retry');
  const cancel = act('Call it off', `reeve task cancel ${task_id}`, 'cancel');
  if (station === 'failed' || station === 'cancelled') return [retry];
  const isTask = holder !== undefined && (waits_for.includes(holder) || parked_on === holder);
  const url = `/api/v1/why/${holder}`;
  const look: Action = { label: `See ${holder}`, command: `reeve why ${holder}`, method: 'GET', url, allowed: true };
  return [...(isTask ? [look] : []), ...(delayed_until && station === 'waiting' ? [retry] : []), cancel];
}
