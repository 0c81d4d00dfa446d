import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TaskFunctions } from '../../../src/coordinator/tasks/functions.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import { silentLog } from '../../../src/log.ts';
import { type FoundProgram, findRedisCli } from '../../support/redis-cli.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

const run = promisify(execFile);

/** What the guide tells people to copy, by the title above it. */
const GUIDE = readFileSync(new URL('../../../docs/guides/agents.md', import.meta.url), 'utf8');
const shellOf = (title: string): string[] => {
  const section = GUIDE.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text as string);
};

let room: TaskRoom;
let cli: FoundProgram;
beforeAll(async () => {
  room = await aTaskRoom();
  cli = await findRedisCli();
});
afterAll(() => room[Symbol.asyncDispose]());
afterEach(async () => {
  await expectSound(room);
  await room.reset();
});

async function shell(script: string): Promise<{ exit: number; stdout: string }> {
  const { path, port } = room.redis.options;
  const where = `${path ? `-s '${path}'` : `-p ${port}`} --no-auth-warning -a '${room.redis.password}'`;
  const pointed = `redis-cli() { LD_LIBRARY_PATH='${cli.env.LD_LIBRARY_PATH ?? ''}' '${cli.program}' ${where} "$@"; }`;
  return run('bash', ['-c', `${pointed}\n${script}`]).then(
    ({ stdout }) => ({ exit: 0, stdout }),
    (error: { code: number; stdout: string }) => ({ exit: error.code, stdout: error.stdout }),
  );
}

async function loadFunctions(): Promise<void> {
  const { tasks, locks, keyspace } = room;
  const context = () => ({ shift_us: 0, keep: 1_000, source: 'test' });
  const more = { limits: () => USUAL, version: '1', clock: systemClock, log: silentLog };
  await new TaskFunctions({ store: tasks.store, locks, keyspace, context, ...more }).once();
}

test('the script with FCALL in the guide drains a queue, and ends with 7 when there is nothing', async () => {
  await loadFunctions();
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  const [script = ''] = shellOf('With redis-cli and FCALL');
  expect(script).toContain('FCALL odyssey_claim');
  expect(await shell(script)).toMatchObject({ exit: 0 });
  expect(await room.status('B')).toBe('pending');
  expect(await shell(script)).toMatchObject({ exit: 0 });
  expect(await shell(script)).toMatchObject({ exit: 7 });
  expect(await room.tasks.views.detail('A')).toMatchObject({
    station: 'done',
    result: { agent_id: 'ann', files_modified: ['a.ts'], notes: 'done' },
  });
});

test('every line with FCALL in the guide is one that the server takes', async () => {
  await loadFunctions();
  const lines = (shellOf('With redis-cli and FCALL')[1] ?? '').split('\n').filter((line) => line !== '');
  expect(lines.length).toBeGreaterThan(8);
  for (const line of lines) {
    await room.reset();
    await loadFunctions();
    await room.add('TASK-001');
    if (!line.includes('_claim')) await room.tasks.work.claim({ agent: 'ann' });
    expect({ line, ...(await shell(line)) }).toMatchObject({
      line,
      exit: 0,
      stdout: expect.stringMatching(/\S/) as string,
    });
  }
});

test('the script without FCALL in the guide drains a queue, on any Redis', async () => {
  const { tasks, locks, events, keyspace } = room;
  const clock = systemClock;
  const reconciler = new Reconciler({ tasks, locks, events, keyspace, clock, log: silentLog, limits: () => USUAL });
  await room.add({ task_id: 'A', title: 'First' }, { task_id: 'B', depends_on: ['A'] });
  const [script = ''] = shellOf('With redis-cli alone');
  expect(script).not.toMatch(/FCALL|EVAL/);
  for (const id of ['A', 'B']) {
    expect(await shell(script)).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining(`"task_id":"${id}"`) as string,
    });
    expect(await reconciler.once()).toMatchObject({ adopted: [`${id} completed`] });
  }
  expect(await shell(script)).toMatchObject({ exit: 7 });
  expect(await tasks.views.progress()).toMatchObject({ total: 2, completed: 2 });
});
