import { z } from 'zod';
import { everyResource } from '../coordinator/tasks/admission.ts';
import { configHash } from '../coordinator/tasks/config-hash.ts';
import type { Task } from '../coordinator/tasks/task.ts';
import { doublings, type Finding } from './risk.ts';

export const previewSchema = z
  .object({
    task_id: z.string(),
    config_hash: z.string().describe('What a vote is bound to'),
    config_version: z.int(),
    generated_at: z.string(),
    changes: z.array(
      z.object({
        resource: z.string().describe('TYPE:ID'),
        action: z.enum(['write', 'read']),
        reach: z.enum(['one', 'folder']).describe('A folder stands for all that is in it'),
        lock: z.string().describe('The lock that its apply takes'),
        is_free: z.boolean().describe('Whether that lock could be had now'),
        holder: z.string().optional().describe('Who has it now'),
        until: z.string().optional().describe('When that ends, unless it is renewed'),
        purpose: z.string().optional().describe('What they have it for'),
      }),
    ),
    parameters: z.array(z.string()).describe('Names of what it is given'),
    is_verified: z.boolean().describe('Whether reeve itself can hold the change to what it says'),
    warnings: z.array(z.string()),
    errors: z.array(z.string()),
  })
  .meta({ id: 'Preview' });
export type Preview = z.output<typeof previewSchema>;
export type PreviewChange = Preview['changes'][number];

/** Somebody has a lock now. */
export interface Holding {
  readonly agent: string;
  readonly until: string;
  readonly purpose: string;
  readonly isShared: boolean;
}

/** What is known of a task besides itself. */
export interface Surroundings {
  readonly version: number;
  readonly at: string;
  /** Who holds the lock on a resource now, by `TYPE:ID`. */
  readonly holders: ReadonlyMap<string, readonly Holding[]>;
  /** Why it must not start, as the queue judges it. */
  readonly quarantine: string;
  readonly openDependencies: readonly string[];
  readonly criticality: number;
  /** A person described the work in a file; its worker gets a working copy, not a production system. */
  readonly isOfFile: boolean;
}

/** What an apply would change, as far as reeve holds it to that: the locks it takes are the only things it may touch. */
export function previewOf(task: Task, around: Surroundings): Preview {
  const changes = changesOf(task, around.holders);
  return {
    task_id: task.task_id,
    config_hash: configHash(task),
    config_version: around.version,
    generated_at: around.at,
    changes,
    parameters: Object.keys(task.parameters ?? {}),
    is_verified: isVerified(task, around.isOfFile),
    warnings: warningsOf(task, around, changes),
    errors: errorsOf(task, around),
  };
}

/** What it does with its parameters is for its author to say, and one that names nothing could touch anything. */
export function isVerified(task: Task, isOfFile: boolean): boolean {
  if (Object.keys(task.parameters ?? {}).length > 0) return false;
  return isOfFile || everyResource(task).length > 0;
}

/** How much it changes. A change that cannot be verified is the greatest there is. */
export function magnitudeOf(task: Task, isOfFile: boolean): Finding {
  if (!isVerified(task, isOfFile)) {
    const why = task.parameters ? 'what it does with its parameters' : 'what it touches';
    return { value: 100, because: `nobody but its author knows ${why}` };
  }
  const written = everyResource(task).filter(({ mode }) => mode === 'exclusive');
  if (written.length === 0) return { value: UNSAID, because: 'it does not say which files it changes' };
  const weight = written.reduce((sum, resource) => sum + (reachOf(resource) === 'folder' ? FOLDER : 1), 0);
  return { value: doublings(weight), because: `it changes ${written.length} thing${written.length > 1 ? 's' : ''}` };
}

/** How many files a folder stands for. */
const FOLDER = 8;
const UNSAID = 30;

function changesOf(task: Task, holders: Surroundings['holders']): PreviewChange[] {
  return everyResource(task).map((resource) => {
    const { type, id, mode } = resource;
    const name = `${type}:${id}`;
    // Readers do not keep a reader out.
    const inTheWay = (holders.get(name) ?? []).filter(({ isShared }) => mode === 'exclusive' || !isShared);
    const last = inTheWay.toSorted((one, other) => one.until.localeCompare(other.until)).at(-1);
    return {
      resource: name,
      action: mode === 'exclusive' ? 'write' : 'read',
      reach: reachOf(resource),
      lock: `resource:${name}`,
      is_free: last === undefined,
      ...(last && { holder: inTheWay.map(({ agent }) => agent).join(', '), until: last.until }),
      ...(last?.purpose && { purpose: last.purpose }),
    };
  });
}

const reachOf = ({ type, id }: Task['resources'][number]): PreviewChange['reach'] =>
  type === 'file' && /[/\\]$|[*?{]/.test(id.trim()) ? 'folder' : 'one';

function warningsOf(
  task: Task,
  { openDependencies, criticality, isOfFile }: Surroundings,
  changes: readonly PreviewChange[],
) {
  const warnings: string[] = [];
  const held = changes.filter(({ is_free }) => !is_free);
  if (!isVerified(task, isOfFile))
    warnings.push('reeve cannot verify what it will do: it counts as the greatest change there is');
  if (held.length > 0)
    warnings.push(
      `${held.map(({ resource, holder, until }) => `${resource} is held by ${holder} until ${until}`).join(', ')}`,
    );
  if (openDependencies.length > 0) warnings.push(`it waits for ${openDependencies.join(', ')}`);
  if (task.rollback_strategy === 'none' && criticality >= CRITICAL) warnings.push('it cannot be rolled back');
  return warnings;
}
const CRITICAL = 50;

const errorsOf = (_task: Task, { quarantine }: Surroundings): string[] => (quarantine ? [quarantine] : []);
