import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TaskFunctions } from '../../../src/coordinator/tasks/functions.ts';
import { TaskStore } from '../../../src/coordinator/tasks/task-store.ts';
import { silentLog } from '../../../src/log.ts';
import { type FoundProgram, findRedisCli } from '../../support/redis-cli.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

const run = promisify(execFile);

let room: TaskRoom;
let functions: TaskFunctions;
let cli: FoundProgram;
beforeAll(async () => {
  room = await aTaskRoom();
  cli = await findRedisCli();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = USUAL;
  functions = functionsOf(room);
  await functions.once();
});
afterEach(() => expectSound(room));

const functionsOf = (on: TaskRoom, version = '1.0.0') =>
  new TaskFunctions({
    store: on.tasks.store,
    locks: on.locks,
    keyspace: on.keyspace,
    limits: () => on.limits,
    context: () => ({ shift_us: on.shifted() * 1000, keep: 1_000, source: 'test' }),
    version,
    clock: systemClock,
    log: silentLog,
  });

/** redis-cli as a shell would call it: what it prints, and its exit code. */
async function redisCli(...words: readonly string[]): Promise<{ lines: string[]; exit: number }> {
  const { path, port } = room.redis.options;
  const where = path ? ['-s', path] : ['-p', String(port)];
  const args = [...where, '--no-auth-warning', '-a', room.redis.password, '-e', ...words];
  const env = { ...process.env, ...cli.env };
  const ran = await run(cli.program, args, { env }).then(
    ({ stdout }) => ({ stdout, exit: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => ({
      stdout: error.stdout + error.stderr,
      exit: error.code,
    }),
  );
  const text = ran.stdout.replace(/\n+$/, '');
  return { lines: text === '' ? [] : text.split('\n'), exit: ran.exit };
}
const fcall = (name: string, ...words: readonly string[]) => redisCli('FCALL', `odyssey_${name}`, '0', ...words);
const claimed = async (agent: string, ...more: readonly string[]) => {
  const [task = '', lockId = '', token = '', expiresAt = '', json = ''] = (await fcall('claim', agent, ...more)).lines;
  return { task, lockId, token, expiresAt, json };
};

describe('with redis-cli and FCALL an agent', () => {
  test('claims, tells how far it is, and finishes; what waited is released', async () => {
    await room.add(
      { task_id: 'A', title: 'First', files_to_modify: ['src/a.ts'] },
      { task_id: 'B', depends_on: ['A'] },
    );
    const { task, lockId, token, expiresAt, json } = await claimed('ann');
    expect(task).toBe('A');
    expect(JSON.parse(json)).toMatchObject({
      task: { task_id: 'A', title: 'First' },
      lease: {
        lock_id: lockId,
        fencing_token: token,
        agent_id: 'ann',
        expires_at: expiresAt,
        lease_class: 'agent',
        attempt: 1,
      },
      again: false,
    });
    expect(await room.locks.inspect({ kind: 'task', id: 'A' as never })).toMatchObject({
      holders: [{ agent: 'ann', lockId }],
    });
    expect((await fcall('note', 'A', 'ann', 'half of it', 'percent', '50')).exit).toBe(0);
    expect(await room.tasks.views.detail('A')).toMatchObject({
      status: 'in_progress',
      because: 'half of it',
      percent: 50,
    });
    const done = await fcall('done', 'A', 'ann', 'result', '{"notes":"did it","files_modified":[],"more":{"list":[]}}');
    expect(done.lines.slice(1)).toEqual(['B']);
    expect(JSON.parse((await room.client.get(room.keys.taskResult('A')))!)).toMatchObject({
      task_id: 'A',
      agent_id: 'ann',
      files_modified: [],
      notes: 'did it',
      errors: [],
      more: { list: [] },
    });
    expect(await room.client.exists(room.keys.taskLock('A'), room.keys.resourceLock('file', 'src%2Fa.ts'))).toBe(0);
  });

  test('is told by an empty answer that there is nothing, and gets what it has when it asks again', async () => {
    expect(await fcall('claim', 'ann')).toEqual({ lines: [], exit: 0 });
    await room.add('A', 'B');
    const first = await claimed('ann');
    expect(await claimed('ann')).toMatchObject({ task: 'A', lockId: first.lockId });
    expect(await claimed('bob', 'lock_id', 'mine-1')).toMatchObject({ task: 'B', lockId: 'mine-1' });
    expect(await claimed('bob', 'lock_id', 'mine-1')).toMatchObject({ task: 'B', lockId: 'mine-1' });
  });

  test('is fenced like any other: late words are refused with exit code 1, late results are kept', async () => {
    await room.add('A');
    const { lockId } = await claimed('ann', 'lease', 'process');
    room.shift(31_000);
    await room.tasks.overdue.dueOnce();
    await functions.once();
    const second = await room.tasks.work.claim({ agent: 'bob' });
    expect(second).toMatchObject({ outcome: 'claimed' });
    for (const words of [
      ['beat', 'A', 'ann'],
      ['note', 'A', 'ann', 'x'],
      ['done', 'A', 'ann', 'lock_id', lockId],
      ['drop', 'A', 'ann'],
    ]) {
      const { lines, exit } = await fcall(...(words as [string, ...string[]]));
      expect(lines.join(' ')).toMatch(/^LEASE_LOST ann does not have A: it is assigned \(bob\)/);
      expect(exit).toBe(1);
    }
    expect(await room.client.llen(room.keys.lateResults('A'))).toBe(1);
    expect(await room.tasks.work.complete({ task: 'A', agent: 'bob' })).toMatchObject({ outcome: 'completed' });
  });

  test('keeps its lease by beating', async () => {
    await room.add('A');
    await claimed('ann', 'lease', 'process');
    for (let beats = 0; beats < 3; beats++) {
      room.shift(20_000);
      await functions.once();
      expect((await fcall('beat', 'A', 'ann')).exit).toBe(0);
      expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
    }
    await fcall('done', 'A', 'ann');
    expect(await room.client.zcard(room.keys.agentCapacityLeases('ann'))).toBe(0);
  });

  test('fails by class: an attempt of the task, none for a limit, whose type pauses', async () => {
    await room.add('A', 'B');
    await claimed('ann', 'type', 'codex', 'task', 'A');
    expect((await fcall('fail', 'A', 'ann', 'no table')).lines).toEqual(['retry', '1', '1']);
    await claimed('ann', 'type', 'codex', 'task', 'B');
    expect((await fcall('fail', 'B', 'ann', 'limit reached', 'class', 'quota')).lines).toEqual(['retry', '0', '0']);
    const paused = await fcall('claim', 'cat', 'type', 'codex');
    expect(paused).toEqual({ lines: ['WORK_PAUSED no work is handed out to cat: limit reached'], exit: 1 });
    await room.tasks.pauses.resume('codex');
    await claimed('ann', 'task', 'B');
    expect((await fcall('fail', 'B', 'ann', 'cannot', 'final', '1', 'result', '{"errors":["e1"]}')).lines).toEqual([
      'failed',
      '1',
    ]);
    expect(JSON.parse((await room.client.get(room.keys.taskResult('B')))!)).toMatchObject({ errors: ['e1', 'cannot'] });
  });

  test('gives a task back', async () => {
    await room.add('A');
    await claimed('ann');
    expect(await fcall('drop', 'A', 'ann', 'reason', 'not mine')).toEqual({ lines: ['OK'], exit: 0 });
    expect(await room.queue()).toEqual(['A']);
  });

  test('gets only what its type and its capabilities fit, given or registered', async () => {
    await room.add({ task_id: 'UI', category: 'ui' }, { task_id: 'RUST', requires: ['Rust 1.80'] });
    expect(await claimed('eng', 'type', 'fullstack-nodejs-nextjs-engineer')).toMatchObject({ task: '' });
    expect(await claimed('ann', 'capabilities', 'go,rust1.80')).toMatchObject({ task: 'UI' });
    await room.client.hset(room.keys.agent('reg'), 'agent_type', 'codex', 'capabilities', '["rust 1.80"]');
    expect(await claimed('reg')).toMatchObject({ task: 'RUST' });
    expect(await room.client.hget(room.keys.agent('reg'), 'agent_type')).toBe('codex');
    expect((await fcall('claim', 'zed', 'task', 'UI')).lines).toEqual(['TASK_BUSY UI is in the hands of ann']);
    await room.client.expire(room.keys.agent('reg'), 100);
  });

  test('is told what is wrong with what it typed, and nothing happens', async () => {
    await room.add('A');
    const wrong: [readonly string[], RegExp][] = [
      [['claim'], /wants AGENT/],
      [['claim', 'a:b'], /agent is letters/],
      [['claim', 'queue'], /agent is letters/],
      [['claim', 'ann', 'typ', 'x'], /does not know "typ"/],
      [['claim', 'ann', 'type'], /wants a value for type/],
      [['done', 'A', 'ann', 'result', 'no json'], /a result is a JSON object/],
      [['done', 'A', 'ann', 'result', '[]'], /a result is a JSON object/],
      [['done', 'A', 'ann', 'result', '{"notes":1}'], /notes is a text/],
      [['done', 'A', 'ann', 'result', '{"errors":[1]}'], /errors is a list of texts/],
      [['fail', 'A', 'ann', 'x', 'class', 'bad'], /class is/],
      [['note', 'A', 'ann', 'x', 'percent', '101'], /percent is/],
      [['beat', 'GHOST', 'ann'], /^TASK_UNKNOWN/],
    ];
    for (const [words, says] of wrong) {
      const { lines, exit } = await fcall(...(words as [string, ...string[]]));
      expect(lines.join(' ')).toMatch(says);
      expect(exit).toBe(1);
    }
    expect(await room.queue()).toEqual(['A']);
  });

  test('cannot speak for another task in its result', async () => {
    await room.add('A');
    await claimed('ann');
    const result =
      '{ "task_id" : "Z", "agent\\u005fid":"eve", "notes": "a \\"}, {\\" b", "notes":"last counts", "n": [ [], {} ] }';
    expect((await fcall('done', 'A', 'ann', 'result', result)).exit).toBe(0);
    expect(JSON.parse((await room.client.get(room.keys.taskResult('A')))!)).toMatchObject({
      task_id: 'A',
      agent_id: 'ann',
      notes: 'last counts',
      n: [[], {}],
    });
  });
});

describe('the library', () => {
  test('comes back after FUNCTION FLUSH, and is left alone while it is there', async () => {
    expect(await functions.once()).toBe('there');
    await room.client.call('FUNCTION', 'FLUSH');
    expect((await fcall('claim', 'ann')).lines.join()).toMatch(/Function not found/);
    expect(await functions.once()).toBe('loaded');
    expect((await fcall('claim', 'ann')).exit).toBe(0);
  });

  test('says its version, is replaced by that of a newer daemon and when a setting changes', async () => {
    const [before] = (await fcall('version')).lines;
    expect(before).toMatch(/^reeve 1\.0\.0 for odyssey [0-9a-f]{12}$/);
    expect(await functionsOf(room, '1.1.0').once()).toBe('loaded');
    expect((await fcall('version')).lines[0]).toMatch(/^reeve 1\.1\.0 for odyssey/);
    room.limits = { ...USUAL, maxAttempts: 1 };
    expect(await functionsOf(room).once()).toBe('loaded');
    await room.add('A');
    await claimed('ann');
    expect((await fcall('fail', 'A', 'ann', 'no')).lines).toEqual(['failed', '1']);
  });

  test('is not taken from another project whose name looks alike', async () => {
    const { connection, scripts, locks } = room;
    const other = (project: string) => {
      const keyspace = { mode: 'standalone', project } as const;
      const store = new TaskStore({ connection, keyspace, scripts, window: () => 1_000 });
      const context = () => ({ shift_us: 0, keep: 1_000, source: 'test' });
      const more = { limits: () => USUAL, version: '1', clock: systemClock, log: silentLog };
      return new TaskFunctions({ store, locks, keyspace, context, ...more });
    };
    expect(await other('my-app').once()).toBe('loaded');
    expect(await other('my_app').once()).toBe('taken by another project');
    expect(await other('my-app').once()).toBe('loaded');
  });

  test('helps', async () => {
    const { lines } = await fcall('help');
    expect(lines.map((line) => line.split(' ')[1])).toEqual(
      ['claim', 'beat', 'note', 'done', 'fail', 'drop'].map((verb) => `odyssey_${verb}`),
    );
  });
});
