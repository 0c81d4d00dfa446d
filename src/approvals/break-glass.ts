import { configHash } from '../coordinator/tasks/config-hash.ts';
import type { Task } from '../coordinator/tasks/task.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { ReeveError } from '../errors.ts';
import { force } from './scripts.ts';

export interface Override {
  readonly reason: string;
  readonly ticket: string;
}

interface Breaking extends Override {
  readonly task: Task;
  readonly version: number;
  readonly by: string;
}

export type Forced =
  | { readonly outcome: 'waiting'; readonly until: string }
  | { readonly outcome: 'forced'; readonly first: string };

/** How long the second person has to agree. */
const OVERRIDE_SECONDS = 3_600;

/** The first admin asks, a second one agrees to the same content. */
export async function breakGlass(store: TaskStore, breaking: Breaking): Promise<Forced> {
  const { task, version, by, reason, ticket } = breaking;
  const { task_id: id } = task;
  const args = { task: id, by, reason, ticket, hash: configHash(task), version: String(version) };
  const life_us = OVERRIDE_SECONDS * 1_000_000;
  const [word, about = ''] = await store.scripts.run(force, {}, { ...store.common(), ...args, life_us });
  switch (word) {
    case 'WAITING':
      return { outcome: 'waiting', until: about };
    case 'APPROVED':
      return { outcome: 'forced', first: about };
    case 'STATE':
      throw new ReeveError('TASK_STATE', { task: id, state: about, what: 'forcing', wanted: 'what waits at the gate' });
    case 'SAME_PERSON':
      throw new ReeveError('OVERRIDE_DENIED', { task: id, why: `${by} has asked for it; somebody else must agree` });
    case 'OWN':
      throw new ReeveError('OVERRIDE_DENIED', { task: id, why: `${by} made it; somebody else must agree` });
    default:
      throw new ReeveError(word === 'CHANGED' ? 'TASK_CHANGED' : 'TASK_UNKNOWN', { task: id });
  }
}
