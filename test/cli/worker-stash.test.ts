import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { onlyObject, type Ran, reeve } from '../support/cli.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';
import { type OpenDaemon, startOpenDaemon } from '../support/open-daemon.ts';
import { until } from '../support/until.ts';

let daemon: OpenDaemon;
let folder: TestFolder;
beforeAll(async () => {
  folder = testFolder();
  daemon = await startOpenDaemon();
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let made = 0;
/** A file with the version of something, and a task of a type of its own that changes it. */
async function aChange(rollback_strategy: string, more: object = {}) {
  const type = `change-${++made}`;
  const task = `C-${made}`;
  const file = folder.write(`${task}.txt`, 'version 1');
  const resources = [{ type: 'thing', id: task }];
  await daemon.call('POST', '/tasks', {
    task,
    title: task,
    agent_type: type,
    rollback_strategy,
    resources,
    submit: true,
    ...more,
  });
  return { type, task, file, content: () => readFile(file, 'utf8') };
}

interface Work {
  readonly type: string;
  readonly exec: string;
  readonly args?: readonly string[];
  readonly started?: (child: ChildProcess) => void;
}
const worker = ({ type, exec, args = [], started }: Work): Promise<Ran> =>
  reeve(['worker', '--agent', `of-${type}`, '--type', type, '--exec', exec, '--once', '--quiet', ...args, ...where()], {
    cwd: folder.path,
    ...(started && { started }),
  });
const where = () => ['--data-dir', daemon.dataDir];
const cli = (...words: string[]) => reeve([...words, ...where()], { cwd: folder.path });
const execution = (task: string) => daemon.call<Record<string, unknown>>('GET', `/tasks/${task}/execution`);
const keeps = (file: string) => ['--stash', `cat ${file}`, '--rollback', `cat "$REEVE_STASH_FILE" > ${file}`];

describe('what undoes a change', () => {
  test('is saved before the change, and used when it fails', async () => {
    const { type, task, file, content } = await aChange('automatic');
    const exec = `curl -s "$REEVE_URL/api/v1/tasks/$REEVE_TASK_ID/execution" > seen.json; echo broken > ${file}; exit 3`;
    const { code } = await worker({ type, exec, args: keeps(file) });
    expect(code).toBe(1);
    expect(await content()).toBe('version 1');
    expect(JSON.parse(await readFile(join(folder.path, 'seen.json'), 'utf8'))).toMatchObject({ stash_bytes: 9 });
    expect(await execution(task)).toMatchObject({
      rollback: 'done',
      rollback_by: `of-${type}`,
      is_rollback_owed: false,
    });
  });

  test('left in its file by the command itself is used, too', async () => {
    const { type, file, content } = await aChange('automatic');
    const exec = `cat ${file} > "$REEVE_STASH_FILE"; echo broken > ${file}; exit 3`;
    await worker({ type, exec, args: ['--rollback', `cat "$REEVE_STASH_FILE" > ${file}`] });
    expect(await content()).toBe('version 1');
  });

  test('handed in by the command with reeve stash is fetched for the rollback', async () => {
    const { type, task, file, content } = await aChange('automatic');
    const bin = join(import.meta.dirname, '../../bin/reeve');
    const exec = `${bin} stash "$REEVE_TASK_ID" --file ${file} >&2; echo broken > ${file}; exit 3`;
    await worker({ type, exec, args: ['--rollback', `cat "$REEVE_STASH_FILE" > ${file}`] });
    expect(await content()).toBe('version 1');
    expect(await execution(task)).toMatchObject({ rollback: 'done', stash_by: `of-${type}` });
  });

  test('that cannot be saved keeps the command from beginning', async () => {
    const { type, task, file, content } = await aChange('automatic');
    await worker({ type, exec: `echo broken > ${file}`, args: ['--stash', 'exit 9'] });
    expect(await content()).toBe('version 1');
    expect(await execution(task)).toMatchObject({ error: expect.stringContaining('was not saved: exit code 9') });
  });

  test('is not asked for where nothing is to be undone', async () => {
    const { type, task, file } = await aChange('none');
    const { code } = await worker({ type, exec: 'true', args: keeps(file) });
    expect(code).toBe(0);
    expect(await execution(task)).not.toHaveProperty('stash_at');
  });
});

test('a worker that was killed between stash and end is undone by the next one, which begins anew', async () => {
  const { type, task, file, content } = await aChange('automatic');
  let child: ChildProcess | undefined;
  const begun = worker({
    type,
    exec: `echo half > ${file}; echo half-way; sleep 600`,
    args: keeps(file),
    started: (one) => {
      child = one;
    },
  });
  await until('the change is half made', async () => (await content()).startsWith('half'));
  child?.kill('SIGKILL');
  await begun;
  // Its lease would end by itself; a person who takes the agent away need not wait for that.
  const { lock_id } = await daemon.call<{ lock_id: string }>('GET', `/tasks/${task}`);
  await daemon.call('POST', `/tasks/${task}/drop`, { agent: `of-${type}`, lock_id, reason: 'its worker died' });
  expect(await execution(task)).toMatchObject({ rollback: 'owed', is_rollback_owed: true });

  const exec = `cat ${file} > found.txt; echo version 2 > ${file}`;
  const { code, stderr } = await worker({ type, exec, args: keeps(file) });
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('rolling it back first') });
  expect(await readFile(join(folder.path, 'found.txt'), 'utf8')).toBe('version 1');
  expect((await content()).trim()).toBe('version 2');
  expect(await execution(task)).toMatchObject({ result: 'success', is_rollback_owed: false });
});

test('what a person has to undo is shown with the command, holds the task back, and is done under its locks', async () => {
  const { type, task, file, content } = await aChange('manual');
  await worker({ type, exec: `echo broken > ${file}; exit 3`, args: keeps(file) });
  expect(await content()).toBe('broken\n');
  const shown = await cli('task', 'rollback', task);
  expect(shown.stdout).toContain(`${task}: to be undone (manual)`);
  expect(shown.stdout).toContain(`reeve task rollback ${task} --exec 'cat "$REEVE_STASH_FILE" > ${file}'`);
  expect((await cli('task', 'stash', task)).stdout).toBe('version 1');
  const why = onlyObject(await cli('why', task, '--json'));
  expect(why).toMatchObject({ says: expect.stringContaining('rolled back'), next: `reeve task rollback ${task}` });
  expect(onlyObject(await cli('task', 'show', task, '--json'))).toMatchObject({ status: 'blocked' });

  const look = `curl -s "$REEVE_URL/api/v1/locks/resource:thing:${task}" > lock.json; cat "$REEVE_STASH_FILE" > ${file}`;
  const undone = await reeve(['task', 'rollback', task, '--exec', look, ...where()], {
    cwd: folder.path,
    env: { REEVE_URL: daemon.url },
  });
  expect(undone).toMatchObject({ code: 0 });
  expect(await content()).toBe('version 1');
  expect(JSON.parse(await readFile(join(folder.path, 'lock.json'), 'utf8'))).toMatchObject({ state: 'held' });
  expect(await execution(task)).toMatchObject({ rollback: 'done', rollback_by: 'local' });
  await cli('task', 'retry', task);
  expect(onlyObject(await cli('task', 'show', task, '--json'))).toMatchObject({ status: 'pending' });
});

test('an output of any length is kept whole, and shown in short', async () => {
  const { type, task } = await aChange('none');
  const { code } = await worker({ type, exec: 'seq 1 20000' });
  expect(code).toBe(0);
  const { stdout } = await cli('task', 'output', task);
  expect(stdout).toBe(`${Array.from({ length: 20_000 }, (_, at) => at + 1).join('\n')}\n`);
  const { output, output_key, output_bytes } = await execution(task);
  expect(output_bytes).toBe(stdout.length);
  expect(output_key).toMatch(new RegExp(`^outputs/${task}/`));
  expect(String(output).length).toBeLessThan(50_000);
  expect(await readFile(join(daemon.dataDir, 'files', String(output_key)), 'utf8')).toBe(stdout);
});

test('an attempt that took too long is told from one that failed', async () => {
  const { type, task } = await aChange('none', { timeout_seconds: 1 });
  await worker({ type, exec: 'sleep 60' });
  expect(await execution(task)).toMatchObject({ error_details: { class: 'timeout' } });
});
