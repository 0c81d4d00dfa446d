import { beforeEach, expect, test } from 'vitest';
import { type Delivery, deliveryOf, enqueue } from '../../src/deliveries/delivery.ts';
import type { Answer } from '../../src/deliveries/post.ts';
import { Sender, type SenderOptions } from '../../src/deliveries/sender.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { aLog } from '../store/builders.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { aReceiver, type Receiver } from '../support/receiver.ts';
import { onBothStores } from '../support/stores.ts';

const LANE = 'webhook:one' as const;
const SECRET = 'a secret nobody may see';

await onBothStores((open) => {
  let store: Store;
  let clock: FakeClock;
  let receiver: Receiver;
  let answers: Answer[];
  beforeEach(async () => {
    store = await open();
    clock = fakeClock();
    receiver = await aReceiver();
    answers = [];
  });

  const aSender = (more: Partial<SenderOptions> = {}) =>
    new Sender({
      store,
      clock,
      log: silentLog,
      worker: 'ann',
      limits: () => ({ attempts: 3, timeoutMs: 5_000, retryMs: 1_000, keepDays: 30 }),
      destinationOf: async () => ({ url: receiver.url, secret: SECRET, allowsPrivate: true }),
      onAnswer: async (_, answer) => void answers.push(answer),
      ...more,
    });
  const send = (count: number, lane: `webhook:${string}` = LANE) =>
    store.db.transaction().execute((tx) =>
      enqueue(
        tx,
        clock,
        Array.from({ length: count }, (_, n) => ({
          lane,
          eventKey: `task/${n}`,
          event: 'task:completed',
          body: `{"n":${n}}`,
        })),
      ),
    );
  const all = async (): Promise<Delivery[]> =>
    (await store.db.selectFrom('deliveries').selectAll().orderBy('position').execute()).map(deliveryOf);
  const numbers = () => receiver.received.map(({ body }) => body.n);

  test('what waits is sent in order, once, and the same parcel twice is one', async () => {
    await send(3);
    await send(3);
    expect(await aSender().sendDueOnce()).toBe(3);
    expect(numbers()).toEqual([0, 1, 2]);
    expect(await aSender().sendDueOnce()).toBe(0);
    expect((await all()).map(({ state, attempts, last_answer }) => [state, attempts, last_answer])).toEqual(
      Array.from({ length: 3 }, () => ['delivered', 1, '200']),
    );
  });

  test('what fails is tried again after a pause that doubles, and holds up what is behind it', async () => {
    receiver.answer(503, {}, 'over\u001b[31mloaded');
    await send(2);
    const sender = aSender();
    expect(await sender.sendDueOnce()).toBe(1);
    expect(await sender.sendDueOnce()).toBe(0);
    await clock.advance(1_200);
    expect(await sender.sendDueOnce()).toBe(1);
    await clock.advance(1_500);
    expect(await sender.sendDueOnce()).toBe(0);
    expect(numbers()).toEqual([0, 0]);
    expect(await all()).toMatchObject([
      { state: 'waiting', attempts: 2, last_answer: '503 over [31mloaded' },
      { state: 'waiting', attempts: 0 },
    ]);

    receiver.answer(204);
    await clock.advance(1_000);
    expect(await sender.sendDueOnce()).toBe(2);
    expect(numbers()).toEqual([0, 0, 0, 1]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  });

  test('what fails too often is a dead letter, and the next one gets its turn', async () => {
    await send(2);
    const { log, lines } = await aLog();
    const sender = aSender({ log });
    receiver.answer(500, {}, SECRET);
    for (let n = 0; n < 3; n++) {
      await sender.sendDueOnce();
      await clock.advance(60_000);
    }
    receiver.answer(200);
    await sender.sendDueOnce();
    expect((await all()).map(({ state }) => state)).toEqual(['dead', 'delivered']);
    const told = lines().filter(({ msg }) => msg === 'a delivery was given up');
    expect(told).toHaveLength(1);
    expect(JSON.stringify(told)).not.toContain(receiver.url);
  });

  test('a receiver may say when it wants to be asked again', async () => {
    receiver.answer(429, { 'retry-after': '120' });
    await send(1);
    const sender = aSender();
    await sender.sendDueOnce();
    await clock.advance(119_000);
    expect(await sender.sendDueOnce()).toBe(0);
    await clock.advance(2_000);
    expect(await sender.sendDueOnce()).toBe(1);
  });

  test('a redirect is a failure: nothing goes to where it points', async () => {
    const other = await aReceiver();
    receiver.answer(307, { location: other.url });
    await send(1);
    await aSender().sendDueOnce();
    expect(other.received).toEqual([]);
    expect(await all()).toMatchObject([{ state: 'waiting', last_answer: '307' }]);
  });

  test('one that does not answer is given up on in time, one that is not there at once', async () => {
    receiver.hang();
    await send(1);
    await aSender({ limits: () => ({ attempts: 3, timeoutMs: 50, retryMs: 1, keepDays: 30 }) }).sendDueOnce();
    expect(await all()).toMatchObject([{ attempts: 1, last_answer: 'no answer within 0.05 s' }]);
    await receiver.close();
    await clock.advance(1_000);
    await aSender().sendDueOnce();
    expect(await all()).toMatchObject([{ attempts: 2, last_answer: 'nobody listens there' }]);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
  });

  test('of two daemons one sends a lane, and of one that died the other takes it over', async () => {
    await send(40);
    const [ann, bob] = [aSender({ worker: 'ann' }), aSender({ worker: 'bob' })];
    await Promise.all([ann.sendDueOnce(), bob.sendDueOnce()]);
    await ann.sendDueOnce();
    expect(numbers()).toEqual(Array.from({ length: 40 }, (_, n) => n));

    await send(41);
    const held = new Date(clock.now() + 20_000).toISOString();
    await store.db.updateTable('delivery_lanes').set({ held_by: 'killed', held_until: held }).execute();
    expect(await bob.sendDueOnce()).toBe(0);
    await clock.advance(20_001);
    expect(await bob.sendDueOnce()).toBe(1);
  });

  test('a lane that fails does not hold up another; one that is switched off waits, one that is gone is given up', async () => {
    await send(1, 'webhook:broken');
    await send(1, 'webhook:off');
    await send(1, 'webhook:gone');
    await send(1, 'webhook:fine');
    const destinationOf: SenderOptions['destinationOf'] = async (lane) => {
      if (lane === 'webhook:off') return 'paused';
      if (lane === 'webhook:gone') return 'gone';
      const url = lane === 'webhook:fine' ? receiver.url : 'http://127.0.0.1:1/';
      return { url, allowsPrivate: true };
    };
    await aSender({ destinationOf }).sendDueOnce();
    expect((await all()).map(({ state, attempts }) => [state, attempts])).toEqual([
      ['waiting', 1],
      ['waiting', 0],
      ['dead', 0],
      ['delivered', 1],
    ]);
    expect(receiver.received[0]?.headers['webhook-signature']).toBeUndefined();
  });

  test('the log goes back so far and no further, but for what still waits', async () => {
    await send(1);
    await aSender().sendDueOnce();
    await send(1, 'webhook:off');
    await clock.advance(31 * 86_400_000);
    await aSender({ destinationOf: async () => 'paused' }).sendDueOnce();
    expect((await all()).map(({ state }) => state)).toEqual(['waiting']);
  });
});
