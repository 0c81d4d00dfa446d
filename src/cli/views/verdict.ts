import type { Output } from '../output.ts';
import { line } from '../render.ts';

/** One line for one thing said: `ok`, then the facts. Its reader is a model or a script. */
export function show(output: Output, answer: Readonly<Record<string, unknown>>): void {
  const facts = Object.entries(answer).map(([name, value]) => [RENAMED[name] ?? name, listed(value)] as const);
  output.print(`ok ${line(Object.fromEntries(facts))}`);
}

const RENAMED: Readonly<Record<string, string>> = { task_id: 'task', expires_at: 'until' };
const listed = (value: unknown): unknown => (Array.isArray(value) ? value.join(',') : value);
