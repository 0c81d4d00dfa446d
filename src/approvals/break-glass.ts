import { configHash } from '../coordinator/tasks/config-hash.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { ReeveError } from '../errors.ts';
import { needsSchema } from './request.ts';
import { force, waive } from './scripts.ts';
import type { WrittenTask } from './written-task.ts';

export interface Override {
  readonly reason: string;
  readonly ticket: string;
}

type Breaking = Override & Pick<WrittenTask, 'task' | 'version'> & { readonly by: string };

export type Forced =
  | { readonly outcome: 'waiting'; readonly until: string }
  | { readonly outcome: 'forced'; readonly first: string };

export type Waived =
  | { readonly outcome: 'waiting'; readonly until: string }
  | { readonly outcome: 'waived'; readonly first: string; readonly state: 'REVIEWING' | 'APPROVED' };

/** How long the second person has to agree. */
const OVERRIDE_SECONDS = 3_600;

/** Lets a task pass in spite of the gate: the first admin asks, a second one agrees to the same content. */
export async function breakGlass(store: TaskStore, breaking: Breaking): Promise<Forced> {
  const args = { ...argsOf(store, breaking), policy: '' };
  const [word = '', about = ''] = await store.scripts.run(force, {}, args);
  if (word === 'WAITING') return { outcome: 'waiting', until: about };
  if (word === 'APPROVED') return { outcome: 'forced', first: about };
  throw refusal(word, about, breaking);
}

/** The same for what one policy asks for. The others stay to be met. */
export async function waivePolicy(store: TaskStore, breaking: Breaking, policy: string): Promise<Waived> {
  const ade = store.adeId(breaking.task.task_id);
  const before = (await store.connection.commands.hget(store.keys.taskApprovalStats(ade), 'needs')) ?? '[]';
  const needs = needsSchema.parse(JSON.parse(before));
  const rest = needs.filter(({ policy_id }) => policy_id !== policy);
  if (rest.length === needs.length) throw new ReeveError('POLICY_UNKNOWN', { policy });
  const args = { ...argsOf(store, breaking), policy, before, needs: JSON.stringify(rest) };
  const [word = '', about = ''] = await store.scripts.run(waive, {}, args);
  if (word === 'WAITING') return { outcome: 'waiting', until: about };
  if (word === 'APPROVED' || word === 'REVIEWING') return { outcome: 'waived', first: about, state: word };
  throw refusal(word, about, breaking);
}

const argsOf = (store: TaskStore, { task, version, by, reason, ticket }: Breaking) => ({
  ...store.common(),
  task: task.task_id,
  by,
  reason,
  ticket,
  hash: configHash(task),
  version: String(version),
  life_us: OVERRIDE_SECONDS * 1_000_000,
});

function refusal(word: string, about: string, { task: { task_id: task }, by }: Breaking): ReeveError {
  switch (word) {
    case 'STATE':
      return new ReeveError('TASK_STATE', { task, state: about, what: 'forcing', wanted: 'what waits at the gate' });
    case 'SAME_PERSON':
      return new ReeveError('OVERRIDE_DENIED', { task, why: `${by} has asked for it; somebody else must agree` });
    case 'OWN':
      return new ReeveError('OVERRIDE_DENIED', { task, why: `${by} made it; somebody else must agree` });
    default:
      return new ReeveError(word === 'CHANGED' ? 'TASK_CHANGED' : 'TASK_UNKNOWN', { task });
  }
}
