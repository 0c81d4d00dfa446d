import { encodeId, parseId } from '../../redis/ids.ts';
import type { Keyspace } from '../../redis/keys.ts';
import { FILE, lockIdIn } from './collisions.ts';
import type { TaskResource } from './task.ts';
import type { TaskStore } from './task-store.ts';

/** By what tasks are found without looking at each: whoever made them, one thing they work on, a tag. */
export interface FoundBy {
  readonly author?: string | undefined;
  /** `TYPE:ID`, or a path. */
  readonly resource?: string | undefined;
  readonly tag?: string | undefined;
}

/** The index that a place in a record's `found_by` means; see lua/_indexes.lua. */
export function indexKey(keys: Keyspace, [kind, name = '', id = '']: readonly string[]): string {
  if (kind === 'author') return keys.tasksByAuthor(name);
  return kind === 'resource' ? keys.tasksByResource(name, id) : keys.tasksByTag(name);
}

/** The indexes that have all of these. */
export const indexesOf = (store: TaskStore, by: FoundBy): string[] =>
  placesOf(by, store.project).map((place) => indexKey(store.keys, place));

const placesOf = ({ author, resource, tag }: FoundBy, project: string): string[][] => [
  ...(author === undefined ? [] : [['author', author]]),
  ...(resource === undefined ? [] : [resourcePlace(resource, project)]),
  ...(tag === undefined ? [] : [['tag', encodeId('tag', tag)]]),
];

/** A thing as people write it: `database:prod`, `file:src/a.ts`, or the path alone. */
export function taskResource(text: string): TaskResource {
  const [, type = FILE, id = ''] = /^(?:resource:)?(?:([A-Za-z0-9][A-Za-z0-9_-]{0,63}):)?(.*)$/s.exec(text) ?? [];
  return { type: parseId('resourceType', type), id, mode: 'exclusive' };
}

function resourcePlace(text: string, project: string): string[] {
  const resource = taskResource(text);
  return ['resource', resource.type, lockIdIn(project, resource)];
}
