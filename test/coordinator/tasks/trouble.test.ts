import { describe, expect, test } from 'vitest';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { everything } from '../../support/everything.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const A = { task: 'A', agent: 'ann' };
/** Every verb, about A that ann works on, B that is ready and C that waits for A. */
const VERBS: readonly [string, () => Promise<unknown>][] = [
  ['nothing is handed out', () => room.tasks.work.claim({ agent: 'ben' })],
  ['not even what is asked for by name', () => room.tasks.work.claim({ agent: 'ben', task: 'B' })],
  ['no lease is renewed', () => room.tasks.work.heartbeat(A)],
  ['nothing is noted', () => room.tasks.work.report(A, { note: 'half way' })],
  ['nothing is completed', () => room.tasks.work.complete(A)],
  ['nothing fails', () => room.tasks.work.fail(A, { error: 'boom' })],
  ['nothing is given back', () => room.tasks.work.drop(A, 'back')],
  ['nothing is called off', () => room.tasks.cancelOne('B', 'not wanted', 'pat')],
  ['nothing is edited', () => room.tasks.amend([{ task_id: 'C' as TaskId, set: { depends_on: [] } }])],
  ['nothing is paused', () => room.tasks.pauses.pause('all', { reason: 'deploy' })],
  ['nothing is taken in', () => room.add('NEW')],
];

describe.each([
  {
    trouble: 'OOM',
    begin: () => room.plain.config('SET', 'maxmemory', '1'),
    end: () => room.plain.config('SET', 'maxmemory', '0'),
  },
  {
    trouble: 'READONLY',
    begin: () => room.plain.replicaof('127.0.0.1', 1),
    end: () => room.plain.replicaof('NO', 'ONE'),
  },
])('on a server that answers $trouble', ({ trouble, begin, end }) => {
  test.each(VERBS)('%s, nothing is half written, and the error is a typed one', async (_, verb) => {
    await room.add('A', 'B', { task_id: 'C', depends_on: ['A'] });
    await room.tasks.work.claim({ agent: 'ann' });
    await room.tasks.store.current();
    const before = await everything(room.plain);
    await begin();
    try {
      await expect(verb()).rejects.toMatchObject({
        code: 'REDIS_UNAVAILABLE',
        message: expect.stringContaining(trouble),
      });
      expect(await everything(room.plain)).toEqual(before);
    } finally {
      await end();
    }
    expect(await room.tasks.work.complete(A)).toMatchObject({ outcome: 'completed', released: ['C'] });
  });
});
