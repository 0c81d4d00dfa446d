import { expect, test } from 'vitest';
import { LeaseKeeper } from '../../src/cli/lease-keeper.ts';
import { ReeveError } from '../../src/errors.ts';
import { operations } from '../../src/operations/index.ts';

const never = new AbortController().signal;
const LEASE = { task: 'T-1', agent: 'ag-1', lock_id: 'L-1' };
const LOCK = { key: 'resource:thing:a', agent: 'ag-1', lock_id: 'L-2' };
const named = (name: string) => operations.find((one) => one.name === name)!;

/** A daemon that answers as it is told to, and remembers what it was asked. */
function aKeeper(answers: Readonly<Record<string, unknown>> = {}) {
  const asked: unknown[] = [];
  const given: Record<string, unknown> = {
    'work.claim': { task: { task_id: 'T-1' }, lease: { agent_id: 'ag-1', lock_id: 'L-1' }, again: false },
    'lock.acquire': { outcome: 'held', lock: LOCK.key, agent: 'ag-1', lock_id: 'L-2' },
    ...answers,
  };
  const keeper = new LeaseKeeper(operations, async ({ name }, input) => {
    asked.push([name, input]);
    const answer = given[name] ?? {};
    if (answer instanceof Error) throw answer;
    return answer;
  });
  const use = (name: string, input: object = {}) => keeper.ask(named(name), input, never);
  const beats = async () => {
    asked.length = 0;
    await keeper.beatOnce(never);
    return asked;
  };
  const givenBack = async () => {
    asked.length = 0;
    await keeper.giveBack(never);
    return asked;
  };
  return { given, use, beats, givenBack };
}

test('beats for what it was given, and gives it back once, what came last first', async () => {
  const { use, beats, givenBack } = aKeeper();
  await use('work.claim');
  await use('lock.acquire');
  expect(await beats()).toEqual([
    ['work.heartbeat', LEASE],
    ['lock.heartbeat', LOCK],
  ]);
  expect(await givenBack()).toEqual([
    ['lock.release', LOCK],
    ['work.drop', { ...LEASE, reason: 'its client went away' }],
  ]);
  expect(await givenBack()).toEqual([]);
});

test('leaves alone what was finished, released, or only noted while Redis is away', async () => {
  const { use, beats, givenBack } = aKeeper({ 'work.finish': { journalled: true, journal_id: 'jrn_1' } });
  await use('work.claim');
  await use('lock.acquire');
  await use('work.finish', LEASE);
  await use('lock.release', LOCK);
  expect([...(await beats()), ...(await givenBack())]).toEqual([]);
});

test('forgets what was lost, and goes on with what a beat did not reach', async () => {
  const { given, use, beats, givenBack } = aKeeper();
  await use('work.claim');
  await use('lock.acquire');
  given['work.heartbeat'] = new ReeveError('LEASE_LOST', { task: 'T-1', agent: 'ag-1' });
  given['lock.heartbeat'] = new ReeveError('REDIS_UNAVAILABLE', { problem: 'it is away' });
  await expect(beats()).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  expect(await givenBack()).toEqual([['lock.release', LOCK]]);
});

test('leaves a place in line when its client goes away, and does not beat for it', async () => {
  const { use, beats, givenBack } = aKeeper({ 'lock.acquire': { ...LOCK, lock: LOCK.key, outcome: 'queued' } });
  await use('lock.acquire');
  expect(await beats()).toEqual([]);
  expect(await givenBack()).toEqual([['lock.release', LOCK]]);
});
