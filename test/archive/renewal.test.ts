import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Renewal, spans } from '../../src/archive/renewal.ts';
import { systemClock } from '../../src/clock.ts';
import { type ApprovalRoom, anApprovalRoom, policy } from '../approvals/room.ts';
import { expectSound } from '../coordinator/tasks/room.ts';

const DAY = 86_400;
const LIFE = 90 * DAY;

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
});
afterEach(async () => {
  await expectSound(room);
  await room.reset();
});
afterAll(() => room[Symbol.asyncDispose]());

/** A renewal whose clock a test sets forward. */
function aRenewal() {
  const at = { days: 0 };
  const clock = { ...systemClock, now: () => systemClock.now() + at.days * DAY * 1000 };
  return { at, renewal: new Renewal({ tasks: room.tasks.store, clock }) };
}

/** As if so many days had passed: every key that has a time has less of it. */
async function age(days: number): Promise<void> {
  for (const key of await room.client.keys('*')) {
    const left = await room.client.ttl(key);
    if (left > days * DAY) await room.client.expire(key, left - days * DAY);
    else if (left >= 0) await room.client.pexpire(key, 0);
  }
}

const ttls = (keys: readonly string[]) => Promise.all(keys.map((key) => room.client.ttl(key)));
const lifeOf = (task: string): string[] => {
  const { keys } = room;
  return [keys.taskState(task), keys.taskData(task), keys.taskConfig(task), keys.taskMetadata(task)];
};

describe('a task that has not ended', () => {
  test('is kept for as long as it waits, with its questions, its answers and the indexes it is found in', async () => {
    const { keys } = room;
    await room.people({ id: 'rob', roles: ['reviewer'] }, { id: 'rita', roles: ['reviewer'] });
    room.terms.policies = [policy({ policy_id: 'both', min_approvers: 2 })];
    await room.draft({ task_id: 'A', tags: ['red'], files_to_modify: ['a.ts'] });
    await room.approvals.submit('A', 'ann');
    await room.approve('A', 'rob');
    await room.approvals.comment('A', 'rob', 'well');
    const all = [
      ...lifeOf('A'),
      ...[keys.taskRisk('A'), keys.approvalVotes('A'), keys.approvalIndex('A'), keys.taskComments('A')],
      ...[keys.taskApprovalStats('A'), keys.approvalRequest('A.1'), keys.approvalRequest('A.2')],
      ...[keys.tasksByAuthor('ann'), keys.tasksByTag('red')],
    ];
    const { at, renewal } = aRenewal();
    for (let turn = 0; turn < 12; turn++) {
      await age(31);
      at.days += 31;
      await renewal.renewOnce();
      for (const left of await ttls(all)) expect(left).toBe(LIFE);
    }
    expect(await room.approve('A', 'rita')).toBe('APPROVED');
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
  });

  test('is looked at when it comes to the age and not in between, and one that ended is not', async () => {
    await room.add('A', { task_id: 'B', phase: 'completed' });
    const { at, renewal } = aRenewal();
    expect(await renewal.renewOnce()).toBe(0);
    for (const [days, renewed] of [
      [29, 0],
      [30.5, 1],
      [31, 0],
      [59, 0],
      [61, 1],
      [200, 1],
    ] as const) {
      at.days = days;
      expect([days, await renewal.renewOnce()]).toEqual([days, renewed]);
    }
  });

  test('is renewed in batches, whatever was born at the same moment, and only those of this project', async () => {
    const ids = Array.from({ length: 250 }, (_, n) => `T${n}`);
    await room.add(...ids.map((task_id) => ({ task_id })));
    const { client, keys } = room;
    await client.set(keys.taskState('apollo.B'), 'APPROVED', 'EX', DAY);
    await client.zadd(keys.tasksByState('APPROVED'), 1, 'apollo.B');
    const { at, renewal } = aRenewal();
    at.days = 40;
    expect(await renewal.renewOnce()).toBe(250);
    expect(await client.ttl(keys.taskState('apollo.B'))).toBeLessThanOrEqual(DAY);
  });

  test('lives on from every move', async () => {
    await room.people({ id: 'rob', roles: ['reviewer'] });
    room.terms.policies = [policy({ policy_id: 'one' })];
    await room.draft('A');
    await age(80);
    await room.approvals.submit('A', 'ann');
    expect(await ttls(lifeOf('A'))).toEqual(lifeOf('A').map(() => LIFE));
    await age(80);
    await room.approve('A', 'rob');
    expect(await ttls([...lifeOf('A'), room.keys.approvalRequest('A.1')])).toEqual([LIFE, LIFE, LIFE, LIFE, LIFE]);
  });
});

test('a look that leaves a task alone finds it renewed within 30 days, however the looks fall', () => {
  const anHours = fc.integer({ min: 1, max: 60 * 24 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 400 * 24 }), fc.array(anHours, { maxLength: 40 }), (bornHour, pauses) => {
      const born = bornHour * 3_600;
      let [now, lookedAt, renewed] = [0, Number.NEGATIVE_INFINITY, born];
      for (const hours of pauses) {
        now += hours * 3_600;
        const isDue = spans(now, lookedAt, born).some(({ from, to }) => born > from && born <= to);
        if (isDue) renewed = now;
        else if (now > born) expect(now - Math.max(renewed, born)).toBeLessThan(30 * DAY);
        lookedAt = now;
      }
    }),
  );
});
