import { createHash } from 'node:crypto';
import { CONTENT_FIELDS, type Task } from './task.ts';

/**
 * What a vote is bound to: everything that people say about a task, and which task it is. Equal content has an equal hash,
 * whatever the order of its keys; what differs in one byte of meaning has another.
 */
export function configHash(task: Task): string {
  const content = Object.fromEntries(CONTENT_FIELDS.map((field) => [field, task[field]]));
  return createHash('sha256')
    .update(canonicalJson({ ...content, task_id: task.task_id }))
    .digest('hex');
}

/** JSON with one spelling for each value: keys in order, nothing between, nothing that is undefined. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => canonicalJson(one ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const named = value as Readonly<Record<string, unknown>>;
  const fields = Object.keys(named)
    .filter((name) => named[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(named[name])}`);
  return `{${fields.join(',')}}`;
}
