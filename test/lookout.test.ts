import { expect, onTestFinished, test } from 'vitest';
import { Lookout } from '../src/lookout.ts';
import { fakeClock } from './support/clock.ts';

const PERIOD_MS = 500;
const QUIET_MS = 30_000;

async function aLookout(look: () => Promise<unknown> = async () => {}) {
  const clock = fakeClock();
  const began = clock.now();
  const looks: number[] = [];
  const failures: unknown[] = [];
  const lookout = new Lookout('test', {
    clock,
    periodMs: PERIOD_MS,
    quietMs: QUIET_MS,
    look: async () => {
      looks.push(clock.now() - began);
      await look();
    },
    onError: (error) => failures.push(error),
  });
  onTestFinished(() => lookout.service.stop());
  await lookout.service.start();
  await clock.asleep();
  return { clock, lookout, looks, failures };
}

test('a lookout looks at once, and then sleeps for long where nobody says a word', async () => {
  const { clock, looks } = await aLookout();
  await clock.advance(QUIET_MS * 0.7);
  expect(looks).toEqual([0]);

  await clock.advance(QUIET_MS);

  expect(looks).toHaveLength(2);
});

test('it looks as soon as it is told, once for several words, and not again before the period is over', async () => {
  const { clock, lookout, looks } = await aLookout();
  await clock.advance(5_000);
  for (let word = 0; word < 3; word++) lookout.told();
  await clock.advance(100);
  lookout.told();
  await clock.advance(100);
  expect(looks).toEqual([0, 5_000]);

  await clock.advance(PERIOD_MS);

  expect(looks).toEqual([0, 5_000, 5_500]);
});

test('it looks after the delay it is told, or sooner if another word is more urgent', async () => {
  const { clock, lookout, looks } = await aLookout();
  await clock.advance(5_000);
  lookout.told(3_000);
  await clock.advance(1_000);
  expect(looks).toEqual([0]);
  lookout.told(500);

  await clock.advance(5_000);

  expect(looks).toEqual([0, 6_500]);
});

test('a word during a look is looked at in the next one', async () => {
  let during = () => {};
  const { clock, lookout, looks } = await aLookout(async () => during());
  during = () => {
    during = () => {};
    lookout.told();
  };
  await clock.advance(5_000);
  lookout.told();

  await clock.advance(PERIOD_MS + 100);

  expect(looks).toEqual([0, 5_000, 5_500]);
});

test('after a failure it tries again within the period or so', async () => {
  const { clock, looks, failures } = await aLookout(async () => {
    throw new Error('broken');
  });

  await clock.advance(PERIOD_MS * 2.5);

  expect(looks.length).toBeGreaterThan(2);
  expect(failures).toHaveLength(looks.length);
});

test('a clock that was set back an hour keeps nobody from being heard', async () => {
  const { clock, lookout, looks } = await aLookout();
  await clock.advance(3_600_000);
  const before = looks.length;
  lookout.told();
  await clock.advance(10);
  expect(looks).toHaveLength(before + 1);
  await clock.advance(-3_600_000);
  lookout.told();

  await clock.advance(PERIOD_MS + 10);

  expect(looks).toHaveLength(before + 2);
});
