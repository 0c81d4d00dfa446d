import { encodeId, isId } from '../../redis/ids.ts';
import { laneOf } from '../agents/matcher.ts';
import { lockIdIn, resourceClaims } from './collisions.ts';
import type { Task } from './task.ts';

/** What admit.lua and amend.lua take of a task's content. */
export interface TaskRecord {
  readonly lane: string;
  readonly requires: string;
  readonly claims: string;
  readonly if_failed: string;
  readonly parent: string;
  readonly timeout: number;
  readonly wants: string;
  /** JSON of the indexes it stands in, besides those of its state and its author. */
  readonly found_by: string;
  readonly data: string;
  readonly meta: string;
  readonly config: readonly (string | number)[];
}

export interface RecordOptions {
  /** For tasks that say nothing about it. */
  readonly defaultTimeout: number;
  /** Whose paths are meant. */
  readonly project: string;
}

export function recordOf(task: Task, { defaultTimeout, project }: RecordOptions): TaskRecord {
  const claims = resourceClaims(everyResource(task), { project }).map(({ type, id, mode, mark, above }) => [
    type,
    id,
    mode === 'shared' ? 's' : 'x',
    mark,
    above,
  ]);
  return {
    lane: laneOf(task),
    requires: task.requires.length > 0 ? JSON.stringify(task.requires.map(skill)) : '',
    claims: claims.length > 0 ? JSON.stringify(claims) : '',
    if_failed: task.if_dependency_fails,
    // Of what cannot be an id nobody is a child.
    parent: isId('task', task.parent_task_id) && task.parent_task_id !== task.task_id ? task.parent_task_id : '',
    timeout: task.timeout_seconds ?? defaultTimeout,
    wants: JSON.stringify({ priority: task.priority, depends_on: task.depends_on }),
    found_by: JSON.stringify(placesOf(task, project)),
    data: JSON.stringify(task),
    meta: JSON.stringify(metaOf(task)),
    config: configOf(task),
  };
}

/** How a capability is compared: "Next.js" is "nextjs". */
export const skill = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}+#]+/gu) ?? []).join('');

/** Where it is found: by each thing it works on, and by each tag. */
const placesOf = (task: Task, project: string): string[][] => [
  ...everyResource(task).map((resource) => ['resource', resource.type, lockIdIn(project, resource)]),
  ...(task.tags ?? []).map((tag) => ['tag', encodeId('tag', tag)]),
];

/** Files are resources whether or not a source lists them twice. */
export const everyResource = ({ resources, files_to_modify }: Task): Task['resources'] => [
  ...resources,
  ...files_to_modify.map((id) => ({ type: FILE_TYPE, id, mode: 'exclusive' as const })),
];
const FILE_TYPE = 'file' as Task['resources'][number]['type'];

/** What a plain client needs to know to do the work. */
function metaOf(task: Task) {
  const { title, description, category, epic, priority, tech_stack, acceptance_criteria, files_to_modify } = task;
  return {
    task_id: task.task_id,
    title,
    description,
    category,
    epic,
    priority,
    tech_stack,
    acceptance_criteria,
    files_to_modify,
    ...(task.agent_type !== undefined && { agent_type: task.agent_type }),
  };
}

function configOf(task: Task): (string | number)[] {
  const priority = Math.min(100, Math.max(0, Math.round(task.priority)));
  return Object.entries({
    type: typeOf(task),
    description: task.description,
    parameters: JSON.stringify(task.parameters ?? {}),
    resources: JSON.stringify(task.resources),
    rollback_strategy: task.rollback_strategy,
    timeout_seconds: task.timeout_seconds ?? '',
    priority,
  }).flat();
}

/** What policies know a task by. */
export const typeOf = ({ category }: Pick<Task, 'category'>): string => category || 'task';

/** What `ade:task:{id}:metadata` has besides author and times. */
export const metadataOf = ({ team = '', ticket_ref = '', tags = [] }: Task): string[] =>
  team || ticket_ref || tags.length > 0 ? ['team', team, 'ticket_ref', ticket_ref, 'tags', JSON.stringify(tags)] : [];

/** The half of the score that comes from how urgent a task is; the other half is its age. The lower the sooner. */
export function rankOf(urgency: number): number {
  const fine = Math.round(-urgency * STEPS);
  return Math.min(HALF, Math.max(-HALF, fine)) + HALF;
}
const STEPS = 16;
/** With 32 bits of age it must stay below 2^53. */
const HALF = 2 ** 19;
