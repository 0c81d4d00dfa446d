import { expect, test } from 'vitest';
import { phaseOf, STATIONS, stationOf } from '../../../src/coordinator/tasks/station.ts';
import { EXECUTION_RESULTS, TASK_STATES, WORK_STATUSES } from '../../../src/coordinator/tasks/task.ts';
import { canMove, NEXT_STATES, TRANSITIONS } from '../../../src/coordinator/tasks/transitions.ts';

/** Rows: the approval state. Columns: the work status. A dash: the two contradict each other. */
const TABLE = `
            pending  assigned  in_progress  completed  failed     blocked
DRAFT       -        -         -            -          -          review
SUBMITTED   -        -         -            -          -          review
REVIEWING   -        -         -            -          -          review
APPROVED    ready    -         -            -          -          waiting
APPLYING    -        working   working      -          -          -
COMPLETED   -        -         -            done       -          -
REJECTED    -        -         -            -          rejected   -
CANCELLED   -        -         -            -          cancelled  -
`;

test('the station follows from state and status, for all pairs of them', () => {
  const lines = TABLE.trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const [statuses, ...rows] = lines;
  expect(statuses).toEqual([...WORK_STATUSES].sort((a, b) => statuses!.indexOf(a) - statuses!.indexOf(b)));
  expect(rows.map(([state]) => state)).toEqual(TASK_STATES);
  for (const state of TASK_STATES) {
    const row = rows.find(([name]) => name === state)!.slice(1);
    const derived = statuses!.map((status) => stationOf({ state, status: status as (typeof WORK_STATUSES)[number] }));
    expect(derived).toEqual(row.map((word) => (word === '-' ? 'inconsistent' : word)));
  }
});

test('a task given up after its retries has failed; one called off is cancelled', () => {
  const end = (result: (typeof EXECUTION_RESULTS)[number] | undefined) =>
    stationOf({ state: 'CANCELLED', status: 'failed', result });
  expect([undefined, ...EXECUTION_RESULTS].map(end)).toEqual([
    'cancelled',
    'cancelled',
    'failed',
    'failed',
    'cancelled',
  ]);
});

test('every station has a phase', () => {
  expect(STATIONS.map(phaseOf)).toEqual([
    'open',
    'open',
    'open',
    'running',
    'completed',
    'failed',
    'cancelled',
    'cancelled',
  ]);
});

test('the transitions are a table: no move twice, none to itself, none out of a rejection', () => {
  const pairs = TRANSITIONS.map(({ from, to }) => `${from} ${to}`);
  expect(new Set(pairs).size).toBe(pairs.length);
  expect(TRANSITIONS.every(({ from, to, by }) => from !== to && by.length > 0)).toBe(true);
  expect(NEXT_STATES.REJECTED).toEqual([]);
  for (const from of TASK_STATES) {
    for (const to of TASK_STATES) expect(canMove(from, to)).toBe(pairs.includes(`${from} ${to}`));
  }
});

test('only a person opens a task again that has ended, and it passes the gate anew', () => {
  const ended = TRANSITIONS.filter(({ from }) => ['COMPLETED', 'REJECTED', 'CANCELLED'].includes(from));
  expect(ended.map(({ from, to, by }) => ({ from, to, by }))).toEqual([
    { from: 'COMPLETED', to: 'DRAFT', by: ['file'] },
    { from: 'CANCELLED', to: 'DRAFT', by: ['author', 'file'] },
  ]);
});
