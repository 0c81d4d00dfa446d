import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parseId } from '../../src/redis/ids.ts';
import { type ApprovalRoom, anApprovalRoom, USUAL_PEOPLE } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
  await room.people(...USUAL_PEOPLE);
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const thing = (id: string, mode: 'exclusive' | 'shared' = 'exclusive') => ({
  type: parseId('resourceType', 'database'),
  id,
  mode,
});
const free = { is_free: true };

test('shows which locks the apply needs, who holds them and until when, as it is at the moment of asking', async () => {
  await room.draft({ task_id: 'T-1', resources: [thing('main'), thing('copy', 'shared')] });
  await room.approvals.submit('T-1', 'ann');
  expect((await room.approvals.preview('T-1')).changes).toMatchObject([free, free]);

  await room.add({ task_id: 'BUSY', resources: [thing('main'), thing('copy', 'shared')] });
  const claimed = await room.tasks.work.claim({ agent: 'bot', task: 'BUSY' });
  if (claimed.outcome !== 'claimed') throw new Error(claimed.outcome);
  const { changes, warnings, errors } = await room.approvals.preview('T-1');
  expect(changes).toEqual([
    {
      resource: 'database:main',
      action: 'write',
      reach: 'one',
      lock: 'resource:database:main',
      is_free: false,
      holder: 'bot',
      until: claimed.lease.expires_at,
      purpose: 'task',
    },
    // Whoever reads does not keep a reader out.
    { resource: 'database:copy', action: 'read', reach: 'one', lock: 'resource:database:copy', is_free: true },
  ]);
  expect(warnings).toContain(`database:main is held by bot until ${claimed.lease.expires_at}`);
  expect(errors).toEqual([]);

  await room.tasks.work.complete({ task: 'BUSY', agent: 'bot' });
  expect((await room.approvals.preview('T-1')).changes).toMatchObject([free, free]);
});
