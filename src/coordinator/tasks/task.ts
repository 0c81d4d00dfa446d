import { z } from 'zod';
import { ID_RULES, idSchema, type TaskId } from '../../redis/ids.ts';

export type { TaskId } from '../../redis/ids.ts';

/** The approval lifecycle: the truth about a task. Its words are those of the key table. */
export const TASK_STATES = ID_RULES.state.words as readonly TaskState[];
export type TaskState =
  | 'DRAFT'
  | 'SUBMITTED'
  | 'REVIEWING'
  | 'APPROVED'
  | 'APPLYING'
  | 'COMPLETED'
  | 'REJECTED'
  | 'CANCELLED';

/** The work queue's word for the same task: what plain clients read and write. */
export const WORK_STATUSES = ['pending', 'assigned', 'in_progress', 'completed', 'failed', 'blocked'] as const;
export type WorkStatus = (typeof WORK_STATUSES)[number];

/** How an execution ended, as ADE keeps it. */
export const EXECUTION_RESULTS = ['success', 'failure', 'timeout', 'cancelled'] as const;
export type ExecutionResult = (typeof EXECUTION_RESULTS)[number];

/** What becomes of a task when one it depends on has failed: wait for a person, do without it, or fail, too. */
export const FAILED_DEPENDENCY_POLICIES = ['block', 'skip', 'fail'] as const;
export type FailedDependencyPolicy = (typeof FAILED_DEPENDENCY_POLICIES)[number];

/** How soon a reviewer should answer. */
export const URGENCIES = ['LOW', 'NORMAL', 'HIGH', 'URGENT'] as const;
export type Urgency = (typeof URGENCIES)[number];

/** Something a task works on. Shared: it only reads it, and others may read it meanwhile. */
const taskResource = z.object({
  type: idSchema('resourceType'),
  /** As people write it: a path, the name of a database. */
  id: z.string().min(1),
  mode: z.enum(['exclusive', 'shared']).default('exclusive'),
});
export type TaskResource = z.output<typeof taskResource>;

/** What people say about a task, and nothing of how it fares. Each field of it is merged for itself. */
const content = {
  title: z.string().describe('What it is called'),
  description: z.string().default('').describe('What is to be done'),
  category: z.string().default('').describe('What kind of work'),
  epic: z.string().default('').describe('What it is part of'),
  /** In the numbers of its origin; which end is urgent is for the whole origin to say (see priority.ts). */
  priority: z.number(),
  tech_stack: z.array(z.string()).default([]).describe('Technologies'),
  acceptance_criteria: z.string().default('').describe('When it is done'),
  files_to_modify: z.array(z.string()).default([]).describe('Paths it changes; a folder covers its contents'),
  /** Everything it works on, the files included. */
  resources: z.array(taskResource).default([]).describe('Everything it works on'),
  depends_on: z.array(z.string()).default([]).describe('Tasks that must be completed first'),
  if_dependency_fails: z.enum(FAILED_DEPENDENCY_POLICIES).default('block').describe('Wait, do without, or fail, too'),
  /** The type of agent it asks for; without one, the matcher suggests. */
  agent_type: z.string().optional().describe('The type of agent it asks for'),
  /** What an agent must be able to do. */
  requires: z.array(z.string()).default([]).describe('What an agent must be able to do'),
  estimated_minutes: z.number().optional().describe('How long it should take'),
  timeout_seconds: z.int().positive().optional().describe('How long it may take'),
  rollback_strategy: z
    .enum(['automatic', 'manual', 'none'])
    .default('none')
    .describe('What the worker does after a failure'),
  parent_task_id: z.string().optional().describe('The task it is part of'),
  /** What the change is given; what it does with it, nobody but its author knows. */
  parameters: z.record(z.string().max(200), z.unknown()).optional().describe('What it is given, as JSON'),
  tags: z.array(z.string().min(1).max(100)).max(50).optional().describe('Words to find it by'),
  team: z.string().max(200).optional().describe('Whose it is'),
  ticket_ref: z.string().max(200).optional().describe('The ticket it belongs to'),
  urgency: z.enum(URGENCIES).optional().describe('How soon reviewers should look at it'),
  /** The task that this one is another try of. */
  supersedes: z.string().optional().describe('The task that it takes the place of'),
};

export const taskIdSchema = idSchema('task');
export const userIdSchema = idSchema('user');
export const agentTypeSchema = idSchema('agentType');

export const taskSchema = z.object({
  task_id: idSchema('task'),
  ...content,
  origin: z.enum(['prd', 'api']),
  created_at: z.string().optional(),
});

/** A task as it is loaded and stored: the JSON of `ade:task:{id}:data` and of the answers about it. */
export type Task = Readonly<Omit<z.output<typeof taskSchema>, 'task_id'>> & { readonly task_id: TaskId };
export type TaskContent = Pick<Task, keyof typeof content>;
export type ContentField = keyof TaskContent;
export const CONTENT_FIELDS = Object.keys(content) as readonly ContentField[];
