import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster, type TestCluster } from '../../support/cluster.ts';
import { Paper, steps } from './paper.ts';
import { aLockRoom, type LockRoom, lockRoomOn, type OpenRoom, USUAL } from './room.ts';

/** More of them: LOCK_RUNS=1000 npx vitest run test/coordinator/locks/model.test.ts */
const RUNS = Number(process.env.LOCK_RUNS ?? 25);

let room: LockRoom;
let cluster: TestCluster;
let spread: OpenRoom;
beforeAll(async () => {
  room = await aLockRoom();
  cluster = await startCluster();
  spread = await lockRoomOn(cluster.target, { mode: 'cluster' });
});
afterAll(async () => {
  await room?.stop();
  await spread?.connection.stop();
  await cluster?.stop();
});

test('locks keep to the paper, whatever is asked of them in which order', async () => {
  const property = fc.asyncProperty(steps, async (commands) => {
    await room.reset();
    await fc.asyncModelRun(() => ({ model: new Paper(false), real: room }), commands);
  });
  await expect(fc.assert(property, { numRuns: RUNS })).resolves.toBeUndefined();
}, 300_000);

test('locks on a cluster keep to the same paper', async () => {
  const property = fc.asyncProperty(steps, async (commands) => {
    spread.time.shiftMs = 0;
    spread.limits = USUAL;
    await cluster.flush();
    await fc.asyncModelRun(() => ({ model: new Paper(true), real: spread }), commands);
  });
  await expect(fc.assert(property, { numRuns: Math.ceil(RUNS / 4) })).resolves.toBeUndefined();
}, 300_000);
