import { z } from 'zod';
import { taskSchema } from '../coordinator/tasks/task.ts';

/** The states a task does not leave by itself. */
export const ENDED_STATES = ['COMPLETED', 'REJECTED', 'CANCELLED'] as const;
export type EndedState = (typeof ENDED_STATES)[number];

/** A hash as it lay in Redis. */
const fields = z.record(z.string(), z.string());

/** All that Redis knew of a task when it was archived; what Redis had forgotten by then is empty. */
export const documentSchema = z.object({
  data: taskSchema,
  config: fields,
  metadata: fields,
  execution: fields,
  risk: fields,
  preview: z.unknown().optional(),
  result: z.unknown().optional(),
  requests: z.array(fields).describe('What people were asked, and what they answered'),
  votes: z.record(z.string(), z.unknown()).describe('By person'),
  tally: fields,
  comments: z.array(z.unknown()),
  late_results: z.array(z.unknown()),
});
export type ArchivedDocument = z.output<typeof documentSchema>;

/** One in a list. */
export interface ArchivedTask {
  readonly task_id: string;
  readonly state: EndedState;
  readonly title: string;
  readonly author: string;
  readonly created_at: string;
  readonly ended_at: string;
  readonly archived_at: string;
}
