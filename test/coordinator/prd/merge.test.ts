import { describe, expect, test } from 'vitest';
import { checksums } from '../../../src/coordinator/prd/checksums.ts';
import { merge, settle } from '../../../src/coordinator/prd/merge.ts';
import type { PrdRow, RowMemory } from '../../../src/coordinator/prd/prd-db.ts';
import type { Phase, Station } from '../../../src/coordinator/tasks/station.ts';
import { PHASES } from '../../../src/coordinator/tasks/station.ts';
import { type Task, type TaskId, taskSchema } from '../../../src/coordinator/tasks/task.ts';
import type { Standing } from '../../../src/coordinator/tasks/task-sink.ts';

const STATION: Record<Phase, Station> = {
  open: 'ready',
  running: 'working',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};
const at = (phase: Phase): Standing => ({ station: STATION[phase], status: 'pending' });
const aTask = (more: Partial<Task> = {}): Task => ({
  ...taskSchema.parse({ task_id: 'T-1', title: 'Do it', priority: 5, origin: 'prd' }),
  ...more,
});
function aRow(more: Partial<PrdRow> = {}): PrdRow {
  const status = { phase: 'open', hold: 'none', word: 'pending', agent: undefined } as const;
  const row = { task: aTask(), ...status, problems: [], ...more };
  return { ...row, sums: checksums(row) };
}
const standing = (phase: Phase) => new Map([['T-1' as TaskId, at(phase)]]);

/** What is remembered after a row was taken in. */
function memoryAfter(row: PrdRow): Map<string, RowMemory> {
  const input = { rows: [row], memories: new Map(), standings: new Map(), known: new Set<string>(), at: 'now' };
  return new Map(merge(input).memories);
}
const mergeOne = (row: PrdRow, memories: ReadonlyMap<string, RowMemory>, phase: Phase) =>
  merge({ rows: [row], memories, standings: standing(phase), known: new Set(['T-1']), at: 'now' });

describe('who is right about where a task stands', () => {
  const word = (phase: Phase) => `file says ${phase}`;
  const settled = (base: Phase, file: Phase, redis: Phase) => {
    const row = aRow({ phase: file, word: word(file) });
    const answer = settle(row, { word: word(base), phase: base, isHeld: false }, at(redis));
    return answer.outcome === 'verdict' ? 'person' : answer.outcome === 'correct' ? 'redis' : 'agree';
  };

  test('over all triples: only one side moved, that one; both, the person, but not over an end it cannot have known', () => {
    for (const base of PHASES) {
      for (const file of PHASES) {
        for (const redis of PHASES) {
          const isNews = redis !== base && (redis === 'completed' || redis === 'cancelled');
          const expected =
            file === base
              ? redis === base
                ? 'agree'
                : 'redis'
              : file === redis
                ? 'agree'
                : isNews
                  ? 'redis'
                  : 'person';
          expect([base, file, redis, settled(base, file, redis)]).toEqual([base, file, redis, expected]);
        }
      }
    }
  });

  test.each([
    ['a person completes what an agent works on', 'running', 'completed', 'running', 'person'],
    ['a person opens a completed task again', 'completed', 'open', 'completed', 'person'],
    ['a person cancels a task that waits', 'open', 'cancelled', 'open', 'person'],
    ['a person gives back what an agent has just taken', 'open', 'cancelled', 'running', 'person'],
    ['a person starts by hand what an agent finished that second', 'open', 'running', 'completed', 'redis'],
    ['a person tries again what has just failed', 'running', 'open', 'failed', 'person'],
  ] as const)('%s', (_, base, file, redis, winner) => expect(settled(base, file, redis)).toBe(winner));

  test('a file without memory proves no edit: what has ended there has ended, else Redis knows better', () => {
    const first = (file: Phase, redis: Phase) => settle(aRow({ phase: file }), undefined, at(redis)).outcome;
    expect(first('completed', 'open')).toBe('verdict');
    expect(first('open', 'completed')).toBe('correct');
    expect(first('running', 'open')).toBe('correct');
    expect(first('completed', 'failed')).toBe('correct');
    expect(first('open', 'open')).toBe('agree');
  });

  test('putting aside and taking back are a person’s word, too', () => {
    const pending = { word: 'pending', phase: 'open', isHeld: false } as const;
    const blocked = { word: 'blocked', phase: 'open', isHeld: true } as const;
    const setAside = (hold: 'edit' | 'word') => aRow({ word: 'blocked', hold });
    for (const hold of ['edit', 'word'] as const) {
      expect(settle(setAside(hold), pending, at('open'))).toMatchObject({ verdict: { to: 'held' } });
      expect(settle(setAside(hold), pending, at('running'))).toMatchObject({ verdict: { to: 'held' } });
      expect(settle(setAside(hold), blocked, at('open'))).toEqual({ outcome: 'agree' });
    }
    expect(settle(aRow(), blocked, at('open'))).toMatchObject({ verdict: { to: 'released' } });
  });

  test('a word found at first sight is a hold only where nothing else could have written it', () => {
    expect(settle(aRow({ word: 'blocked', hold: 'word' }), undefined, at('open'))).toMatchObject({
      verdict: { to: 'held' },
    });
    expect(settle(aRow({ word: 'blocked', hold: 'edit' }), undefined, at('open'))).toEqual({ outcome: 'agree' });
  });

  test('a word that cannot be read decides nothing', () => {
    const row = aRow({ word: 'compelted', problems: [{ field: 'status', says: 'its status is …' }] });
    expect(settle(row, { word: 'pending', phase: 'open', isHeld: false }, at('running'))).toEqual({ outcome: 'agree' });
  });
});

describe('fields', () => {
  const row = aRow({ task: aTask({ title: 'Old', description: 'words', depends_on: ['T-0'] }) });

  test('only those that were edited in the file are carried over', () => {
    const edited = aRow({ task: { ...row.task, title: 'New', depends_on: ['T-0', 'T-9'] } });
    expect(mergeOne(edited, memoryAfter(row), 'running').amendments).toEqual([
      { task_id: 'T-1', set: { title: 'New', depends_on: ['T-0', 'T-9'] } },
    ]);
  });

  test('an unchanged row says nothing, and nothing is remembered anew', () => {
    expect(mergeOne(row, memoryAfter(row), 'open')).toEqual({
      admissions: [],
      amendments: [],
      cancelled: [],
      corrections: [],
      memories: new Map(),
      forgotten: [],
    });
  });

  test('a field that became unreadable quarantines the task and keeps what it had; mended, it is an edit if it is one', () => {
    const broken = aRow({
      task: { ...row.task, depends_on: [], title: 'New' },
      problems: [{ field: 'depends_on', says: 'its depends_on is bad' }],
    });
    const first = mergeOne(broken, memoryAfter(row), 'open');
    expect(first.amendments).toEqual([{ task_id: 'T-1', set: { title: 'New' }, quarantine: 'its depends_on is bad' }]);
    const mended = aRow({ task: { ...broken.task, depends_on: ['T-0'] } });
    expect(mergeOne(mended, first.memories, 'open').amendments).toEqual([{ task_id: 'T-1', quarantine: null }]);
    const other = aRow({ task: { ...broken.task, depends_on: ['T-7'] } });
    expect(mergeOne(other, first.memories, 'open').amendments).toEqual([
      { task_id: 'T-1', set: { depends_on: ['T-7'] }, quarantine: null },
    ]);
  });
});

describe('rows that come and go', () => {
  test('a new row is admitted as it stands', () => {
    const row = aRow({ phase: 'running', word: 'in_progress', agent: 'agent-001' });
    const { admissions } = merge({
      rows: [row],
      memories: new Map(),
      standings: new Map(),
      known: new Set(),
      at: 'now',
    });
    expect(admissions).toEqual([{ task: row.task, phase: 'running', isHeld: false, agent: 'agent-001' }]);
  });

  test('when Redis has lost it, a word that we wrote means what we meant by it', () => {
    const failed = aRow({ word: 'blocked', hold: 'word' });
    const memories = new Map([['T-1', { ...memoryAfter(failed).get('T-1')!, phase: 'failed' as const, isHeld: true }]]);
    const { admissions } = merge({ rows: [failed], memories, standings: new Map(), known: new Set(), at: 'now' });
    expect(admissions).toMatchObject([{ phase: 'failed' }]);
  });

  test('a row that is gone calls its task off, whether the file or we remember it', () => {
    const memories = memoryAfter(aRow());
    const gone = merge({ rows: [], memories, standings: new Map(), known: new Set(['T-1', 'T-2']), at: 'now' });
    expect(gone).toMatchObject({ cancelled: ['T-1', 'T-2'], forgotten: ['T-1'] });
  });

  test('what Redis says of a row that was not edited is written', () => {
    const { corrections, amendments } = mergeOne(aRow(), memoryAfter(aRow()), 'completed');
    expect(amendments).toEqual([]);
    expect(corrections).toEqual([{ task_id: 'T-1', phase: 'completed', agent: undefined, at: 'now' }]);
  });
});
