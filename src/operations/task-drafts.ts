import { z } from 'zod';
import { type Task, taskIdSchema } from '../coordinator/tasks/task.ts';
import { ReeveError } from '../errors.ts';
import type { Rooms } from './rooms.ts';

export const copyShape = z.object({ task_id: z.string(), status: z.string(), supersedes: z.string() });

/** Writes a task that nobody has written yet, before the gate. */
export async function writeDraft(rooms: Rooms, given: Task, author: string): Promise<void> {
  if (await rooms.tasks.views.detail(given.task_id)) {
    const why = 'a task of that id is there already';
    throw new ReeveError('TASK_BUSY', { task: given.task_id, agent: author, why });
  }
  const created_at = new Date(rooms.clock.now()).toISOString();
  await rooms.tasks.admit([{ task: { ...given, created_at }, phase: 'open', isDraft: true, author }]);
}

/** Writes a draft that takes the place of a task that ended. Nothing of what people said of that one counts for it. */
export async function writeCopy(rooms: Rooms, known: Task, author: string): Promise<z.output<typeof copyShape>> {
  const copy = await freeCopyOf(rooms, known.task_id);
  await writeDraft(rooms, { ...known, task_id: copy, origin: 'api', supersedes: known.task_id }, author);
  return { task_id: copy, status: 'blocked', supersedes: known.task_id };
}

/** T-1 becomes T-1.r2, that T-1.r3. */
async function freeCopyOf(rooms: Rooms, id: string) {
  const [, base = id, number] = /^(.*?)(?:\.r(\d+))?$/.exec(id) ?? [];
  for (let at = Number(number ?? 1) + 1; ; at++) {
    const copy = taskIdSchema.parse(`${base}.r${at}`);
    if (!(await rooms.tasks.standings([copy])).has(copy)) return copy;
  }
}
