import { beforeEach, describe, expect, test } from 'vitest';
import type { TaskContent, TaskId } from '../../../src/coordinator/tasks/task.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const edit = (id: string, set: Partial<TaskContent>) => room.tasks.amend([{ task_id: id as TaskId, set }]);
const quarantine = async (id: string) => (await room.tasks.views.detail(id))?.quarantine;
const standing = () => Promise.all(['A', 'B', 'C', 'D', 'E'].map((id) => room.status(id)));
const A = { task: 'A', agent: 'ann' };

describe('an edit closes a circle while one of its members is worked on', () => {
  beforeEach(async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] }, { task_id: 'C', depends_on: ['B'] }, 'D');
    await room.tasks.work.claim({ agent: 'ann', task: 'A' });
    await edit('A', { depends_on: ['C'] });
  });

  test('the circle is named, its agent goes on, and nobody else is held', async () => {
    expect(await quarantine('B')).toContain('→');
    expect(await room.status('A')).toBe('assigned');
    expect(await room.tasks.work.heartbeat(A)).toMatchObject({ outcome: 'noted' });
    expect(await room.queue()).toEqual(['D']);
  });

  test('its completion counts, and when the edit is taken back what waited goes on', async () => {
    expect(await room.tasks.work.complete(A)).toMatchObject({ outcome: 'completed' });
    await edit('A', { depends_on: [] });
    expect(await quarantine('B')).toBeUndefined();
    expect(await room.status('B')).toBe('pending');
    expect(await room.status('C')).toBe('blocked');
  });

  test('when it comes back unfinished it is held like the others, until the circle is open', async () => {
    await room.tasks.work.drop(A, 'back');
    expect(await room.status('A')).toBe('blocked');
    expect(await room.tasks.work.claim({ agent: 'ann', task: 'A' })).toMatchObject({ outcome: 'busy' });
    await edit('C', { depends_on: [] });
    expect(await quarantine('A')).toBeUndefined();
    expect(await room.queue()).toEqual(['C', 'D']);
  });
});

describe('a task that comes to depend on one that', () => {
  test('is called off waits, for nothing says that it can do without', async () => {
    await room.add('A', 'B');
    await room.tasks.cancelOne('A', 'not wanted', 'pat');
    await edit('B', { depends_on: ['A'] });
    expect(await room.status('B')).toBe('blocked');
    expect((await room.tasks.views.detail('B'))?.waits_for).toEqual(['A']);
  });

  test('failed goes on or fails, too, where it says so, and what waits for it in turn', async () => {
    await room.add('A');
    await room.tasks.judge('A', { to: 'failed' }, 'pat', 'broken');
    await room.add({ task_id: 'B', depends_on: ['A'] });
    await room.add({ task_id: 'C', depends_on: ['A'], if_dependency_fails: 'skip' });
    await room.add({ task_id: 'D', depends_on: ['A'], if_dependency_fails: 'fail' });
    await room.add({ task_id: 'E', depends_on: ['D'], if_dependency_fails: 'fail' });
    expect(await standing()).toEqual(['failed', 'blocked', 'pending', 'failed', 'failed']);
  });

  test('failed long ago, by an edit of what it depends on or of what it does then', async () => {
    await room.add(
      'A',
      'B',
      { task_id: 'C', if_dependency_fails: 'skip' },
      { task_id: 'D', if_dependency_fails: 'fail' },
    );
    await room.add({ task_id: 'E', depends_on: ['D'], if_dependency_fails: 'fail' });
    await room.tasks.judge('A', { to: 'failed' }, 'pat', 'broken');
    for (const id of ['B', 'C', 'D']) await edit(id, { depends_on: ['A'] });
    expect(await standing()).toEqual(['failed', 'blocked', 'pending', 'failed', 'failed']);
    await edit('B', { if_dependency_fails: 'skip' });
    await edit('C', { if_dependency_fails: 'block' });
    expect(await standing()).toEqual(['failed', 'pending', 'blocked', 'failed', 'failed']);
    await edit('C', { if_dependency_fails: 'fail' });
    expect(await standing()).toEqual(['failed', 'pending', 'failed', 'failed', 'failed']);
    await room.tasks.reopen('A', 'mended', 'pat');
    expect(await standing()).toEqual(['pending', 'blocked', 'failed', 'failed', 'failed']);
  });

  test('failed, taken in together with it, as when a queue is rebuilt from its file', async () => {
    await room.add(
      { task_id: 'E', depends_on: ['D'], if_dependency_fails: 'fail' },
      { task_id: 'D', depends_on: ['A'], if_dependency_fails: 'fail' },
      { task_id: 'C', depends_on: ['A'], if_dependency_fails: 'skip' },
      { task_id: 'B', depends_on: ['A'] },
      { task_id: 'A', phase: 'failed' },
    );
    expect(await standing()).toEqual(['failed', 'blocked', 'pending', 'failed', 'failed']);
  });

  test('failed does not hold a task that can do without it when a person brings that back', async () => {
    await room.add('A', { task_id: 'C', depends_on: ['A'], if_dependency_fails: 'skip' });
    await room.tasks.judge('A', { to: 'failed' }, 'pat', 'broken');
    await room.tasks.work.claim({ agent: 'ann' });
    await room.tasks.work.complete({ task: 'C', agent: 'ann' });
    await room.tasks.reopen('C', 'once more', 'pat');
    expect(await room.status('C')).toBe('pending');
  });

  test('a person has put aside waits until that one is let go and done', async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] });
    await room.tasks.amend([{ task_id: 'A' as TaskId, verdict: { to: 'held' } }]);
    expect(await room.queue()).toEqual([]);
    await room.tasks.amend([{ task_id: 'A' as TaskId, verdict: { to: 'released' } }]);
    expect(await room.queue()).toEqual(['A']);
    await room.tasks.work.claim({ agent: 'ann' });
    await room.tasks.work.complete(A);
    expect(await room.queue()).toEqual(['B']);
  });
});
