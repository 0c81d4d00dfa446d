import { isId, type ResourceType } from '../../redis/ids.ts';
import { FILE, lockId } from '../tasks/collisions.ts';
import { type ContentField, FAILED_DEPENDENCY_POLICIES, type Task, type TaskResource } from '../tasks/task.ts';
import { type Cell, type Cells, isEmpty, listOf, numberOf, textOf, textsOf } from './cells.ts';
import type { RowProblem } from './prd-db.ts';

/** Reads one row and keeps what is wrong with it, so that one bad field neither stops the row nor passes for good. */
export class RowReader {
  readonly #cells: Cells;
  readonly problems: RowProblem[] = [];

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  cell(...names: readonly string[]): Cell {
    return this.#cells[names.find((name) => !isEmpty(this.#cells[name])) ?? ''];
  }

  text(...names: readonly string[]): string {
    return textOf(this.cell(...names));
  }

  problem(field: RowProblem['field'], says: string): void {
    this.problems.push({ field, says });
  }

  /** The value, or a problem and the placeholder. */
  known<T>(field: RowProblem['field'], value: T | undefined, placeholder: T, says: () => string): T {
    if (value !== undefined) return value;
    this.problem(field, says());
    return placeholder;
  }

  list(field: ContentField, ...names: readonly string[]): string[] {
    const says = () => `its ${names[0]} is no list of texts: ${quoted(this.cell(...names))}`;
    return this.known(field, textsOf(this.cell(...names)), [], says);
  }

  oneOf<const W extends string>(field: ContentField, words: readonly W[], otherwise: W): W {
    const cell = this.cell(field);
    if (isEmpty(cell)) return otherwise;
    const word = words.find((known) => known === textOf(cell).trim().toLowerCase());
    return this.known(field, word, otherwise, () => `its ${field} is ${quoted(cell)}, not one of ${words.join(', ')}`);
  }

  /** A number above zero; absent if the row has none. */
  amount(field: ContentField, names: readonly string[], scale = 1): number | undefined {
    const cell = this.cell(...names);
    if (isEmpty(cell)) return undefined;
    const number = numberOf(cell);
    if (number !== undefined && number > 0) return Math.max(1, Math.round(number * scale));
    this.problem(field, `its ${names[0]} is ${quoted(cell)}, no number above 0`);
    return undefined;
  }

  /** What the optional columns say; both formats may have them, neither must. */
  extras() {
    const files = this.#files();
    return {
      tech_stack: this.list('tech_stack', 'tech_stack'),
      files_to_modify: files.filter(({ mode }) => mode === 'exclusive').map(({ id }) => id),
      resources: this.#lockable([...files, ...this.#resources()]),
      if_dependency_fails: this.oneOf('if_dependency_fails', FAILED_DEPENDENCY_POLICIES, 'block'),
      agent_type: this.text('agent_type') || undefined,
      requires: this.list('requires', 'requires', 'required_capabilities'),
      timeout_seconds: this.amount('timeout_seconds', ['timeout_seconds']),
      rollback_strategy: this.oneOf('rollback_strategy', ['automatic', 'manual', 'none'], 'none'),
    } satisfies Partial<Task>;
  }

  #files(): TaskResource[] {
    const shared = this.list('resources', 'files_to_read').map((path) => file(path, 'shared'));
    const list = listOf(this.cell('files_to_modify'))?.map(fileOf);
    if (list?.every((entry) => entry !== undefined)) return [...list, ...shared];
    this.problem('files_to_modify', `its files_to_modify is no list of paths: ${quoted(this.cell('files_to_modify'))}`);
    return shared;
  }

  #resources(): TaskResource[] {
    const list = listOf(this.cell('resources'))?.map(resourceOf);
    if (list?.every((entry) => entry !== undefined)) return list;
    this.problem('resources', `its resources are no list of TYPE:NAME: ${quoted(this.cell('resources'))}`);
    return [];
  }

  /** A name that cannot be a lock's is found here, not by the claim. */
  #lockable(resources: TaskResource[]): TaskResource[] {
    try {
      resources.forEach(lockId);
      return resources;
    } catch {
      this.problem('resources', 'one of its files or resources has a name that no lock can have');
      return [];
    }
  }
}

/** For people; cut, since a cell may hold anything. */
export const quoted = (cell: Cell): string => {
  const text = textOf(cell);
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
};

const file = (id: string, mode: TaskResource['mode']): TaskResource => ({ type: FILE as ResourceType, id, mode });

/** A path, or `{"path": …, "read_only": true}`. */
function fileOf(entry: unknown): TaskResource | undefined {
  if (typeof entry === 'string') return entry.trim() === '' ? undefined : file(entry, 'exclusive');
  const { path, read_only } = fieldsOf(entry);
  return typeof path === 'string' && path.trim() !== '' ? file(path, read_only ? 'shared' : 'exclusive') : undefined;
}

/** `TYPE:NAME`, or `{"type": …, "id": …, "read_only": true}`. */
function resourceOf(entry: unknown): TaskResource | undefined {
  if (typeof entry === 'string') {
    const [type, ...name] = entry.split(':');
    return resourceOf({ type, id: name.join(':') });
  }
  const { type, id, read_only, mode } = fieldsOf(entry);
  if (!isId('resourceType', type) || typeof id !== 'string' || id === '') return undefined;
  return { type, id, mode: read_only || mode === 'shared' ? 'shared' : 'exclusive' };
}

const fieldsOf = (entry: unknown): Readonly<Record<string, unknown>> =>
  typeof entry === 'object' && entry !== null ? { ...entry } : {};
