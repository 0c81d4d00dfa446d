import { beforeEach, expect, test } from 'vitest';
import { Analytics } from '../../src/analytics/analytics.ts';
import { Pipeline } from '../../src/analytics/pipeline.ts';
import type { EventName, ReeveEvent } from '../../src/events/catalogue.ts';
import { EVENTS } from '../../src/events/catalogue.ts';
import type { Store } from '../../src/store/database.ts';
import { fakeClock } from '../support/clock.ts';
import { onBothStores } from '../support/stores.ts';

let number = 0;
const at = (day: number, hour = 0) =>
  `2026-01-${String(day).padStart(2, '0')}T${String(hour).padStart(2, '0')}:00:00.000001Z`;
const anEvent = (event: EventName, when: string, payload: Record<string, unknown>): ReeveEvent => {
  number += 1;
  return {
    stream: EVENTS[event].stream,
    id: `${Date.parse(when)}-${number}`,
    event,
    at: when,
    source: 'test',
    payload,
  };
};
const made = (when: string, ...tasks: string[]) => anEvent('tasks_admitted', when, { tasks });
const moved = (task: string, to: string, when: string) =>
  anEvent(to === 'COMPLETED' ? 'task:completed' : 'task:state_changed', when, { task_id: task, from: 'X', to });

await onBothStores((open) => {
  let store: Store;
  let pipeline: Pipeline;
  let analytics: Analytics;
  let states: Record<string, string>;
  beforeEach(async () => {
    store = await open();
    const clock = fakeClock(Date.UTC(2026, 0, 5, 12));
    states = {};
    const statesOf = async (tasks: readonly string[]) => tasks.map((task) => states[task] ?? null);
    pipeline = new Pipeline({ store, clock, lifecycleId: (task) => task, statesOf });
    analytics = new Analytics({ store, clock });
  });
  const story = () => [
    made(at(1), 'A', 'B', 'C'),
    moved('A', 'APPLYING', at(2)),
    moved('A', 'COMPLETED', at(2, 6)),
    made(at(3), 'D'),
    moved('B', 'CANCELLED', at(3)),
    moved('C', 'APPLYING', at(4)),
    moved('C', 'APPROVED', at(4, 1)),
    moved('C', 'APPLYING', at(4, 2)),
    moved('C', 'COMPLETED', at(5)),
  ];

  test('the burn-up tells day by day what there is and what is done', async () => {
    await pipeline.count(story());
    expect(await analytics.burnup(5)).toEqual([
      { day: '2026-01-01', created: 3, completed: 0, dropped: 0, scope: 3, done: 0 },
      { day: '2026-01-02', created: 0, completed: 1, dropped: 0, scope: 3, done: 1 },
      { day: '2026-01-03', created: 1, completed: 0, dropped: 1, scope: 3, done: 1 },
      { day: '2026-01-04', created: 0, completed: 0, dropped: 0, scope: 3, done: 1 },
      { day: '2026-01-05', created: 0, completed: 1, dropped: 0, scope: 3, done: 2 },
    ]);
    expect(await analytics.burnup(2)).toMatchObject([
      { scope: 3, done: 1 },
      { scope: 3, done: 2 },
    ]);
  });

  test('an event that is read again, or late, changes nothing that it should not', async () => {
    const events = story();
    await pipeline.count(events.slice(5));
    await pipeline.count(events);
    await pipeline.count(events.slice(2, 7));
    expect(await analytics.burnup(1)).toMatchObject([{ scope: 3, done: 2 }]);
    const { events: counts, lead_time, work_time } = await analytics.summary(30);
    expect(counts).toEqual({ 'task:completed': 2, 'task:state_changed': 5, tasks_admitted: 2 });
    expect(lead_time).toEqual({ count: 2, p50_seconds: 108_000, p85_seconds: 345_600, p95_seconds: 345_600 });
    expect(work_time).toMatchObject({ count: 2, p50_seconds: 21_600 });
  });

  test('two daemons that count the same events at once count them once', async () => {
    const events = story();
    await Promise.all([pipeline.count(events), pipeline.count(events), pipeline.count(events)]);
    expect((await analytics.summary(30)).events).toMatchObject({ tasks_admitted: 2, 'task:completed': 2 });
  });

  test('a task that comes back is no longer done; one that came finished is done from the start', async () => {
    states.OLD = 'COMPLETED';
    await pipeline.count([made(at(1), 'A', 'OLD'), moved('A', 'CANCELLED', at(2)), moved('A', 'APPROVED', at(3))]);
    expect(await analytics.burnup(1)).toMatchObject([{ scope: 2, done: 1 }]);
  });

  test('how long reviewers take', async () => {
    const asked = { approval_id: 'R', task_id: 'T', reviewer: 'ann' };
    await pipeline.count([anEvent('approval:requested', at(1), asked), anEvent('approval:approved', at(1, 2), asked)]);
    expect((await analytics.summary(30)).approval_time).toMatchObject({ count: 1, p50_seconds: 7_200 });
    expect((await analytics.summary(1)).approval_time).toEqual({ count: 0 });
  });
});
