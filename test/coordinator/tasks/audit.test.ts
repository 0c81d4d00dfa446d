import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Actor, actAs } from '../../../src/actor.ts';
import { Audit } from '../../../src/audit/audit.ts';
import { drainOnce } from '../../../src/audit/drain.ts';
import { checkOnce } from '../../../src/audit/gap-check.ts';
import { readOutbox } from '../../../src/audit/outbox.ts';
import { systemClock } from '../../../src/clock.ts';
import { silentLog } from '../../../src/log.ts';
import { aDirectory, aStore } from '../../store/builders.ts';
import { aTaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const rows = async () =>
  (await readOutbox(room.connection, room.keys, 1_000)).rows.map(
    ({ entry: { user, action, task, from, to, reason } }) =>
      `${user}: ${action} ${task} ${from}→${to}${reason ? ` (${reason})` : ''}`,
  );
const by = (user: string): Actor => ({ user });

test('every change of state leaves a row that says who made it, also where several share a call', async () => {
  const { work } = room.tasks;
  await actAs(by('zoe'), () => room.add('A', 'B', 'C'));
  const claim = (agent: string) => actAs(by(agent), () => work.claim({ agent, type: 'codex' }));
  // The first claims are not usual, the later ones are, and share a call.
  await claim('ann');
  await claim('ben');
  await actAs(by('ann'), () => work.drop({ task: 'A', agent: 'ann' }, 'no time'));
  await actAs(by('ben'), () => work.drop({ task: 'B', agent: 'ben' }, 'no time'));
  const [first, second] = await Promise.all([claim('ann'), claim('ben')]);
  expect([first.outcome, second.outcome]).toEqual(['claimed', 'claimed']);
  await Promise.all([
    actAs(by('ann'), () => work.complete({ task: 'A', agent: 'ann' })),
    actAs(by('ben'), () => work.complete({ task: 'B', agent: 'ben' })),
  ]);
  await actAs(by('zoe'), () => room.tasks.cancelOne('C', 'unwanted', 'zoe'));

  expect(await rows()).toEqual([
    'zoe: create A →APPROVED',
    'zoe: create B →APPROVED',
    'zoe: create C →APPROVED',
    'ann: claim A APPROVED→APPLYING',
    'ben: claim B APPROVED→APPLYING',
    'ann: return A APPLYING→APPROVED (no time)',
    'ben: return B APPLYING→APPROVED (no time)',
    'ann: claim A APPROVED→APPLYING',
    'ben: claim B APPROVED→APPLYING',
    'ann: complete A APPLYING→COMPLETED',
    'ben: complete B APPLYING→COMPLETED',
    'zoe: cancel C APPROVED→CANCELLED (unwanted)',
  ]);
});

test('the audit-logger finds a change whose row is gone, before and after the drain, and no other', async () => {
  const { connection, keys, events, client, tasks } = room;
  const store = await aStore({ url: `sqlite:${join(await aDirectory(), 'test.db')}` });
  const options = { connection, keys, events, store, clock: systemClock, log: silentLog, worker: 'test' };
  await room.add('A', 'B');
  await tasks.work.claim({ agent: 'ann' });
  expect(await checkOnce(options)).toEqual({ checked: 2, gaps: [] });

  await tasks.work.complete({ task: 'A', agent: 'ann' });
  await drainOnce(options);
  expect(await checkOnce(options)).toEqual({ checked: 2, gaps: [] });

  await tasks.work.claim({ agent: 'ann' });
  const [[gone]] = (await client.xrevrange(keys.auditOutbox(), '+', '-', 'COUNT', 1)) as [[string, string[]]];
  await client.xdel(keys.auditOutbox(), gone);
  const { gaps } = await checkOnce(options);
  expect(gaps).toEqual([
    {
      event: 'task:state_changed',
      at: expect.any(String),
      subject: 'task:B',
      task: 'B',
      from: 'APPROVED',
      to: 'APPLYING',
    },
  ]);
  expect(await new Audit(options).verify([])).toMatchObject({ ok: true });
});
