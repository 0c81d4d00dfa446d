import { crc32 } from 'node:zlib';
import { CONTENT_FIELDS, type ContentField, type Task } from '../tasks/task.ts';
import type { PrdRow } from './prd-db.ts';

/** A sum of each field that could be read, as one text: equal texts mean that nothing was edited. */
export function checksums({ task, problems }: Pick<PrdRow, 'task' | 'problems'>): string {
  const readable = CONTENT_FIELDS.filter((field) => !problems.some((problem) => problem.field === field));
  return readable.map((field) => `${field}=${checksum(task[field])}`).join(' ');
}

/** The fields whose sums differ or are new. */
export function editedFields(before: string, now: string): ContentField[] {
  if (before === now) return [];
  const sums = sumsOf(before);
  return [...sumsOf(now)].filter(([field, sum]) => sums.get(field) !== sum).map(([field]) => field);
}

/** The sums of now, and those from before of fields that have none now: they could not be read, which is no edit. */
export function carriedOver(before: string, now: string): string {
  const sums = new Map([...sumsOf(before), ...sumsOf(now)]);
  return CONTENT_FIELDS.flatMap((field) => (sums.has(field) ? [`${field}=${sums.get(field)}`] : [])).join(' ');
}

function sumsOf(text: string): ReadonlyMap<ContentField, string> {
  const pairs = text === '' ? [] : text.split(' ');
  return new Map(pairs.map((pair) => pair.split('=') as [ContentField, string]));
}

/** Tells an edit from none; nobody tries to fool it, so it need not be hard to. */
function checksum(value: Task[ContentField]): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `${crc32(text).toString(36)}.${text.length}`;
}
