import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { EVENTS, type EventName, type ReeveEvent } from '../../src/events/catalogue.ts';
import { isNoticed, noticeOf } from '../../src/notices/notice.ts';
import { Notifications, type Route } from '../../src/notices/notifications.ts';
import { routesFor } from '../../src/notices/routing.ts';
import { NOTIFICATION_ROUTE } from '../../src/notification-route.ts';
import type { Store } from '../../src/store/database.ts';
import { aDirectory, aStore } from '../store/builders.ts';
import { fakeClock } from '../support/clock.ts';

const anEvent = (event: EventName, payload: Record<string, unknown>): ReeveEvent => ({
  stream: EVENTS[event].stream,
  id: '1-1',
  event,
  at: '2026-01-01T00:00:00.000001Z',
  source: 'test',
  payload,
});
const requested = anEvent('approval:requested', {
  approval_id: 'A-1',
  task_id: 'T-1',
  reviewer: 'ann',
  risk: 70,
  due_at: '2026-01-03T00:00:00Z',
});
const aRoute = (given: Record<string, unknown>): Route =>
  NOTIFICATION_ROUTE.parse({ name: 'ops', url: 'https://example.com/', ...given });

describe('who is told what', () => {
  test('a reviewer that is asked', () => {
    expect(noticeOf(requested, { title: 'Move the tables', author: 'zoe' })).toEqual({
      to: [{ user: 'ann' }],
      text: 'Your approval is wanted for T-1 (Move the tables), risk 70, until 2026-01-03T00:00:00Z.',
      next: 'reeve approval show A-1',
    });
  });

  test('an author of an answer; one whose task came from a file is nobody', () => {
    const answered = anEvent('approval:rejected', {
      approval_id: 'A',
      task_id: 'T',
      reviewer: 'ann',
      reason: 'too wide',
    });
    expect(noticeOf(answered, { author: 'zoe' })).toMatchObject({
      to: [{ user: 'zoe' }],
      text: 'ann refused T: too wide',
    });
    expect(noticeOf(answered, { author: 'system' })).toBeUndefined();
  });

  test('a reviewer whose answer is wanted no more, by whom', () => {
    const resolved = anEvent('approval:resolved', {
      approval_id: 'A',
      task_id: 'T',
      reviewer: 'ben',
      by: 'ann',
      because: 'enough people agreed',
    });
    expect(noticeOf(resolved, {})?.text).toBe('You need not answer about T any more: enough people agreed (ann).');
  });

  test('operators of a full queue; nobody of an ordinary grant', () => {
    const full = anEvent('lock:queue_full', { lock: 'resource:db:x', agent_id: 'a', depth: 1000 });
    expect(noticeOf(full, {})).toMatchObject({ to: [{ onCall: '' }, { role: 'admin' }] });
    expect(isNoticed('lock:acquired')).toBe(false);
  });

  test('what others wrote cannot break the sentence', () => {
    const odd = noticeOf(requested, { title: `a\u001b[2J\nb${'x'.repeat(5_000)}` })!;
    expect(odd.text).not.toMatch(/\p{Cc}/u);
    expect(odd.text.length).toBeLessThan(500);
  });

  test('every event it knows is in the catalogue, or will be', () => {
    const known = Object.keys(EVENTS).filter(isNoticed);
    expect(known.length).toBeGreaterThan(10);
  });
});

describe('by which route', () => {
  const rolesOf = (user: string) => (user === 'ann' ? ['reviewer', 'dba'] : []);
  const names = (routes: readonly Route[], to: Parameters<typeof routesFor>[2]['to'], event = 'approval:requested') =>
    routesFor(routes, event, { to }, rolesOf).map(({ name }) => name);

  test('by person, by a role or group of the person, by everybody', () => {
    const routes = [
      aRoute({ name: 'hers', users: ['ann'] }),
      aRoute({ name: 'group', roles: ['dba'] }),
      aRoute({ name: 'all', users: ['*'] }),
      aRoute({ name: 'his', users: ['ben'] }),
      aRoute({ name: 'nobody' }),
    ];
    expect(names(routes, [{ user: 'ann' }])).toEqual(['hers', 'group', 'all']);
    expect(names(routes, [{ role: 'dba' }])).toEqual(['group']);
  });

  test('on call: by flag, by role, by person, by the name of the route', () => {
    const routes = [
      aRoute({ name: 'pager', onCall: true }),
      aRoute({ name: 'night' }),
      aRoute({ name: 'hers', users: ['ann'] }),
      aRoute({ name: 'group', roles: ['sre'] }),
    ];
    expect(names(routes, [{ onCall: '' }])).toEqual(['pager']);
    expect(names(routes, [{ onCall: 'night' }])).toEqual(['pager', 'night']);
    expect(names(routes, [{ onCall: 'sre' }])).toEqual(['pager', 'group']);
    expect(names(routes, [{ onCall: 'ann' }])).toEqual(['pager', 'hers']);
  });

  test('only of the events that it wants', () => {
    const routes = [aRoute({ name: 'few', users: ['ann'], events: ['approval:escalated'] })];
    expect(names(routes, [{ user: 'ann' }])).toEqual([]);
    expect(names(routes, [{ user: 'ann' }], 'approval:escalated')).toEqual(['few']);
  });
});

describe('the notification-service', () => {
  let store: Store;
  beforeEach(async () => {
    store = await aStore({ url: `sqlite:${join(await aDirectory(), 'test.db')}` });
  });
  const aRoom = (...routes: Route[]) =>
    new Notifications({
      store,
      clock: fakeClock(),
      routes: () => routes,
      taskFacts: async () => ({ title: 'Move <the> tables & more', author: 'zoe' }),
      roles: async () => () => [],
      onWaiting: () => {},
    });
  const rows = () => store.db.selectFrom('deliveries').selectAll().orderBy('position').execute();

  test('tells each route once, Slack in its own words', async () => {
    const room = aRoom(
      aRoute({ name: 'chat', slack: 'https://hooks.example.com/T/B/secret', url: undefined, users: ['*'] }),
      aRoute({ name: 'json', users: ['ann'], secret: 'a secret' }),
    );
    await room.notify([requested]);
    await room.notify([requested]);
    const [chat, json, ...more] = await rows();
    expect(more).toEqual([]);
    expect(JSON.parse(chat!.body)).toEqual({
      text: '*ann*: Your approval is wanted for T-1 (Move &lt;the&gt; tables &amp; more), risk 70, until 2026-01-03T00:00:00Z.\n`reeve approval show A-1`',
    });
    expect(JSON.parse(json!.body)).toMatchObject({
      type: 'approval:requested',
      to: ['ann'],
      data: { approval_id: 'A-1' },
    });
    expect(room.destination('json')).toEqual({ url: 'https://example.com/', secret: 'a secret', allowsPrivate: true });
    expect(room.destination('gone')).toBe('gone');
    const shown = JSON.stringify([room.list(), await rows()]);
    expect(shown).not.toContain('secret"');
    expect(shown).not.toContain('/T/B/');
  });

  test('a route is tried with a message that means nothing', async () => {
    const room = aRoom(aRoute({ name: 'json' }));
    await room.test('json');
    expect(await rows()).toMatchObject([{ lane: 'route:json', event: 'notification:test', state: 'waiting' }]);
    await expect(room.test('none')).rejects.toMatchObject({ code: 'ROUTE_UNKNOWN' });
  });
});

test('a route leads to one place', () => {
  expect(NOTIFICATION_ROUTE.safeParse({ name: 'a' }).success).toBe(false);
  expect(NOTIFICATION_ROUTE.safeParse({ name: 'a', slack: 'https://a/', url: 'https://b/' }).success).toBe(false);
  expect(NOTIFICATION_ROUTE.safeParse({ name: 'a', url: 'https://me:pw@b/' }).success).toBe(false);
});
