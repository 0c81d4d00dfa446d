import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { EXIT } from '../../error-catalogue.ts';
import { type Client, daemonOf } from '../client.ts';
import type { CommandModule, Surroundings } from '../main.ts';
import type { Output } from '../output.ts';
import { partsOf } from '../parts.ts';
import type { Typed } from '../program.ts';
import { ask } from '../question.ts';
import { render } from '../render.ts';
import { run as hold } from './hold.ts';

const executionSchema = z.looseObject({
  lock: z.string(),
  is_rollback_owed: z.boolean(),
  stash_at: z.string().optional(),
  stash_by: z.string().optional(),
  stash_bytes: z.number().optional(),
  stash_command: z.string().optional(),
  rollback: z.string().optional(),
  rollback_reason: z.string().optional(),
  error: z.string().optional(),
});
type Execution = z.output<typeof executionSchema>;

/** Shows what there is to undo; undoes it by a command; or says how that went. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { input, flags } = typed;
  const exec = typeof flags.exec === 'string' ? flags.exec : undefined;
  if (exec === undefined && input.outcome !== undefined) return tell(typed, input, output, surroundings);
  const client = await daemonOf(flags, surroundings);
  const { signal } = surroundings;
  const path = '/tasks/{task}/execution';
  const { answer } = await client.ask({ method: 'GET', path, input: { task: input.task }, signal });
  const execution = executionSchema.parse(answer);
  if (exec === undefined) return show(String(input.task), execution, output);
  const code = await undo(typed, { exec, execution, client }, output, surroundings);
  const reason = code === 0 ? exec : `${exec} (exit code ${code})`;
  // Held back, lost or interrupted, nothing is known of how far it came; a person looks at it and says so.
  if (code >= 128 || code === EXIT.held || code === EXIT.timeout) return code;
  await tell(typed, { task: input.task, outcome: code === 0 ? 'done' : 'failed', reason }, output, surroundings);
  return code;
};

async function tell(
  typed: Typed,
  said: Readonly<Record<string, unknown>>,
  output: Output,
  surroundings: Surroundings,
): Promise<number> {
  const answer = await ask(typed, said, surroundings);
  if (output.form === 'json') output.json(answer);
  else render(output, answer);
  return EXIT.ok;
}

function show(task: string, execution: Execution, output: Output): number {
  if (output.form === 'json') {
    output.json({ task_id: task, ...execution });
    return EXIT.ok;
  }
  const { is_rollback_owed, stash_at, stash_by, stash_bytes, stash_command, rollback, rollback_reason, error } =
    execution;
  if (stash_at === undefined) {
    output.print(`${task}: no attempt has saved what undoes it`);
    return EXIT.ok;
  }
  const state = is_rollback_owed
    ? `to be undone (${rollback})`
    : rollback === 'done'
      ? 'undone'
      : 'nothing to undo now';
  output.print(`${task}: ${state}`);
  output.print(`saved    ${stash_bytes} bytes by ${stash_by} at ${stash_at}`);
  if (error && is_rollback_owed) output.print(`error    ${error}`);
  if (rollback_reason) output.print(`said     ${rollback_reason}`);
  output.print(`look     reeve task stash ${task}`);
  output.print(`undo     reeve task rollback ${task} --exec ${quoted(stash_command ?? 'COMMAND')}`);
  output.print(`or say   reeve task rollback ${task} --outcome done --reason "…"`);
  return EXIT.ok;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

interface Undoing {
  readonly exec: string;
  readonly execution: Execution;
  readonly client: Client;
}

/** Under the lock of the task and those of what it works on, as the attempt had them: nobody builds on it meanwhile. */
async function undo(
  { command, input, flags }: Typed,
  { exec, execution, client }: Undoing,
  output: Output,
  surroundings: Surroundings,
): Promise<number> {
  const task = String(input.task);
  const folder = await mkdtemp(join(tmpdir(), 'reeve-undo-'));
  const stashFile = join(folder, 'stash');
  try {
    const parts = partsOf(client, { path: '/tasks/{task}/stash', input: { task }, signal: surroundings.signal });
    await pipeline(Readable.from(parts), createWriteStream(stashFile, { mode: 0o600 }));
    const also = await resourceLocks(client, task);
    const held = {
      lock: execution.lock,
      command: ['/bin/sh', '-c', exec],
      purpose: `rolling back ${task}`,
      ...(also.length > 0 && { also: also.join(',') }),
    };
    const env = { ...surroundings.env, REEVE_TASK_ID: task, REEVE_STASH_FILE: stashFile };
    return await hold({ command, input: held, flags }, output, { ...surroundings, env });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function resourceLocks(client: Client, task: string): Promise<string[]> {
  const { answer } = await client.ask({ method: 'GET', path: '/tasks/{task}/preview', input: { task } });
  const { changes } = z.looseObject({ changes: z.array(z.looseObject({ lock: z.string() })) }).parse(answer);
  // A comma parts the names of locks.
  return changes.map(({ lock }) => lock).filter((lock) => !lock.includes(','));
}
