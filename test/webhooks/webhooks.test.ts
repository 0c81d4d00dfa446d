import { beforeEach, expect, test } from 'vitest';
import type { Answer } from '../../src/deliveries/post.ts';
import type { ReeveEvent } from '../../src/events/catalogue.ts';
import { fits } from '../../src/events/pattern.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { Webhooks } from '../../src/webhooks/webhooks.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { onBothStores } from '../support/stores.ts';

const anEvent = (id: string, event: string): ReeveEvent => ({
  stream: 'task',
  id,
  event,
  at: '2026-01-01T00:00:00.000001Z',
  source: 'test',
  payload: { task_id: 'T-1' },
});
const refused = (status: number): Answer => ({ outcome: 'refused', status, says: '' });
const HOUR_MS = 3_600_000;

test('a pattern fits a name, a family or everything', () => {
  expect(fits(['task:completed'], 'task:completed')).toBe(true);
  expect(fits(['approval:*'], 'approval:requested')).toBe(true);
  expect(fits(['approval:*'], 'task:approved')).toBe(false);
  expect(fits(['*'], 'lock:expired')).toBe(true);
  expect(fits(['task:complete'], 'task:completed')).toBe(false);
});

await onBothStores((open) => {
  let store: Store;
  let clock: FakeClock;
  let webhooks: Webhooks;
  let told: unknown[];
  beforeEach(async () => {
    store = await open();
    clock = fakeClock();
    told = [];
    webhooks = new Webhooks({
      store,
      clock,
      log: silentLog,
      service: 'test',
      limits: () => ({ disableAfterMs: 72 * HOUR_MS, allowsPrivate: false }),
      onWaiting: () => {},
      tell: async (event, payload) => void told.push({ event, ...payload }),
    });
  });
  const make = (...events: string[]) =>
    webhooks.create({ target: 'https://example.com/hook', events, description: '' }, 'zoe');
  const waiting = () => store.db.selectFrom('deliveries').selectAll().orderBy('position').execute();

  test('the secret is shown when it is made, and nowhere afterwards', async () => {
    const { secret, webhook_id } = await make('*');
    expect(secret).toMatch(/^whsec_/);
    const rows = await store.db.selectFrom('audit_intake').select('body').execute();
    const shown = JSON.stringify([
      await webhooks.list(),
      await webhooks.get(webhook_id),
      await webhooks.update(webhook_id, {}),
      rows,
    ]);
    expect(shown).not.toContain(secret);
    expect(await webhooks.destination(webhook_id)).toEqual({
      url: 'https://example.com/hook',
      secret,
      allowsPrivate: false,
    });
  });

  test('each event goes once to each that wants it, however often it is read', async () => {
    const done = await make('task:completed');
    const all = await make('*');
    const off = await make('*');
    await webhooks.update(off.webhook_id, { active: false });
    const events = [anEvent('1-1', 'task:completed'), anEvent('1-2', 'task:approved')];
    await webhooks.dispatch(events);
    await webhooks.dispatch(events);
    expect((await waiting()).map(({ lane, event }) => [lane, event])).toEqual([
      [`webhook:${done.webhook_id}`, 'task:completed'],
      [`webhook:${all.webhook_id}`, 'task:completed'],
      [`webhook:${all.webhook_id}`, 'task:approved'],
    ]);
    expect(JSON.parse((await waiting())[0]!.body)).toEqual({
      type: 'task:completed',
      timestamp: '2026-01-01T00:00:00.000001Z',
      stream: 'task',
      event_id: '1-1',
      source: 'test',
      data: { task_id: 'T-1' },
    });
  });

  test('one that fails for too long is switched off, with an event; one success begins the count anew', async () => {
    const { webhook_id: id } = await make('*');
    await webhooks.answered(id, refused(500));
    await clock.advance(71 * HOUR_MS);
    await webhooks.answered(id, { outcome: 'accepted', status: 200 });
    await clock.advance(2 * HOUR_MS);
    await webhooks.answered(id, refused(500));
    expect(await webhooks.get(id)).toMatchObject({ active: true, failing_since: '2026-01-04T01:00:00.000Z' });
    await clock.advance(72 * HOUR_MS);
    await webhooks.answered(id, refused(500));
    await webhooks.answered(id, refused(500));
    expect(await webhooks.get(id)).toMatchObject({
      active: false,
      disabled_because: 'nothing got through since 2026-01-04T01:00:00.000Z',
    });
    expect(await webhooks.destination(id)).toBe('paused');
    expect(told).toEqual([expect.objectContaining({ event: 'webhook:disabled', webhook_id: id, host: 'example.com' })]);
    expect(await webhooks.update(id, { active: true })).not.toHaveProperty('disabled_because');
  });

  test('one that says that it is gone is switched off at once', async () => {
    const { webhook_id: id } = await make('*');
    await webhooks.answered(id, refused(410));
    expect(await webhooks.get(id)).toMatchObject({ active: false, disabled_because: 'it answered 410: gone' });
  });

  test('one that is taken away takes its deliveries along', async () => {
    const { webhook_id: id } = await make('*');
    await webhooks.dispatch([anEvent('1-1', 'task:completed')]);
    await webhooks.remove(id);
    expect(await waiting()).toEqual([]);
    expect(await webhooks.destination(id)).toBe('gone');
    await expect(webhooks.get(id)).rejects.toMatchObject({ code: 'WEBHOOK_UNKNOWN' });
    const actions = await store.db.selectFrom('audit_intake').select('body').orderBy('id').execute();
    expect(actions.map(({ body }) => JSON.parse(body).action)).toEqual(['webhook.create', 'webhook.delete']);
  });
});
