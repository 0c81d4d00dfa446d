import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AnswerOutcome } from '../../src/approvals/answers.ts';
import type { BatchWishes } from '../../src/approvals/batch.ts';
import type { AnswerAction } from '../../src/approvals/request.ts';
import { configHash } from '../../src/coordinator/tasks/config-hash.ts';
import { parseId } from '../../src/redis/ids.ts';
import { aTask, expectSound } from '../coordinator/tasks/room.ts';
import { until } from '../support/until.ts';
import { type ApprovalRoom, anApprovalRoom, policy, USUAL_PEOPLE, usualTerms } from './room.ts';

let room: ApprovalRoom;
beforeAll(async () => {
  room = await anApprovalRoom();
});
beforeEach(async () => {
  Object.assign(room.terms, usualTerms());
  await room.people(...USUAL_PEOPLE);
});
afterEach(async () => {
  await expectSound(room);
  await room.store.db.deleteFrom('delegations').execute();
  await room.reset();
});
afterAll(() => room[Symbol.asyncDispose]());

const codeOf = (outcome: AnswerOutcome | undefined) =>
  outcome && 'error' in outcome ? outcome.error.code : outcome?.state;
async function say(task: string, by: string, action: AnswerAction, of = by, hash?: string) {
  const approval = await room.requestOf(task, of);
  return codeOf((await room.approvals.answer(by, [{ approval, action, reason: 'so', hash }]))[0]);
}
async function reviewed(task = 'T-1', author = 'ann'): Promise<void> {
  await room.draft(task, author);
  await room.approvals.submit(task, author);
}
const edit = (task: string, description: string, editor = 'ann') =>
  room.tasks.amend([{ task_id: parseId('task', task), set: { description }, editor }]);
const approvedEvents = async () => {
  const entries = await room.client.xrange(room.keys.events('task'), '-', '+');
  return entries.filter(([, fields]) => fields.includes('task:approved')).length;
};

describe('nobody agrees to their own work', () => {
  test('the author is not asked, though an admin, and cannot answer what others were asked', async () => {
    await room.people({ id: 'ann', roles: ['author', 'admin', 'reviewer'] });
    await reviewed();
    const asked = (await room.approvals.desk.about('T-1')).map(({ reviewer_id }) => reviewer_id);
    expect(asked).not.toContain('ann');
    expect(await say('T-1', 'ann', 'approve', 'rob')).toBe('APPROVAL_DENIED');
    expect(await say('T-1', 'ANN', 'approve', 'rob')).toBe('APPROVAL_DENIED');
  });

  test('the last editor is asked no more, and their open question is void', async () => {
    await reviewed();
    const before = await room.requestOf('T-1', 'rob');
    await edit('T-1', 'more', 'rob');
    const [late] = await room.approvals.answer('rob', [{ approval: before, action: 'approve', reason: '' }]);
    expect(codeOf(late)).toBe('APPROVAL_SETTLED');
    expect(await room.requestOf('T-1', 'rob')).toBe('T-1.0');
    expect(await room.approve('T-1', 'rita')).toBe('APPROVED');
  });

  test('agents never vote, whatever other roles they have', async () => {
    await room.people({ id: 'rob', roles: ['reviewer', 'agent'] });
    await reviewed();
    expect(await room.requestOf('T-1', 'rob')).toBe('T-1.0');
    await room.people({ id: 'rita', roles: ['reviewer', 'agent'] });
    expect(await say('T-1', 'rita', 'approve')).toBe('APPROVAL_DENIED');
  });
});

test('a second click is the same vote, a second opinion is none, and taking it back opens the question again', async () => {
  room.terms.policies = [policy({ policy_id: 'two', min_approvers: 2 })];
  await reviewed();
  const approval = await room.requestOf('T-1', 'rob');
  const answer = (action: AnswerAction) => room.approvals.answer('rob', [{ approval, action, reason: '' }]);
  expect(codeOf((await answer('approve'))[0])).toBe('REVIEWING');
  expect((await answer('approve'))[0]).toMatchObject({ again: true });
  expect(codeOf((await answer('reject'))[0])).toBe('APPROVAL_SETTLED');
  expect(await room.approvals.desk.tally('T-1')).toMatchObject({ approved_count: 1 });
  expect(await room.approvals.withdraw(approval, 'rob', 'oh')).toBe('REVIEWING');
  expect(await room.approvals.desk.tally('T-1')).toMatchObject({ approved_count: 0, pending_count: 5 });
  expect(codeOf((await answer('reject'))[0])).toBe('REJECTED');
});

test('a withdrawn approval rejects what has no quorum without it, before it is worked on and not after', async () => {
  await reviewed();
  const approval = await room.requestOf('T-1', 'rob');
  await room.approve('T-1', 'rob');
  expect(await room.approvals.withdraw(approval, 'rob', 'oh')).toBe('REJECTED');
  expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['REJECTED', 'failed']);
  await reviewed('T-2');
  const late = await room.requestOf('T-2', 'rob');
  await room.approve('T-2', 'rob');
  await room.tasks.work.claim({ agent: 'ag-1' });
  await expect(room.approvals.withdraw(late, 'rob', 'oh')).rejects.toMatchObject({ code: 'APPROVAL_SETTLED' });
});

test('a vote is for what was seen: another hash is refused, and content that was edited back needs new votes', async () => {
  await reviewed();
  const seen = (await room.approvals.desk.about('T-1'))[0]!.config_hash;
  expect(await say('T-1', 'rob', 'approve', 'rob', 'f'.repeat(64))).toBe('APPROVAL_STALE');
  const old = await room.requestOf('T-1', 'rob');
  await edit('T-1', 'other');
  await edit('T-1', '');
  const now = (await room.approvals.desk.about('T-1')).at(-1)!;
  expect([now.config_hash, now.config_version]).toEqual([seen, 3]);
  const [late] = await room.approvals.answer('rob', [{ approval: old, action: 'approve', reason: '', hash: seen }]);
  expect(codeOf(late)).toBe('APPROVAL_SETTLED');
  expect(await say('T-1', 'rob', 'approve', 'rob', seen)).toBe('APPROVED');
});

test('equal content has an equal hash whatever the order of its keys, and other targets have another', () => {
  const one = aTask({ task_id: 'A', parameters: { a: 1, b: { c: 2, d: 3 } } });
  const same = aTask({ parameters: { b: { d: 3, c: 2 }, a: 1 }, task_id: 'A' });
  expect(configHash(one)).toBe(configHash(same));
  expect(configHash({ ...one, files_to_modify: ['b/'] })).not.toBe(configHash(one));
  expect(configHash(aTask({ ...one, task_id: 'B' }))).not.toBe(configHash(one));
});

test('a request for changes makes it a draft again, and tells why', async () => {
  await reviewed();
  expect(await say('T-1', 'rob', 'request_changes')).toBe('DRAFT');
  expect(await room.approvals.desk.tally('T-1')).toMatchObject({ pending_count: 0, approved_count: 0 });
  expect((await room.tasks.views.detail('T-1'))?.because).toContain('changes were asked for');
  expect(await room.approvals.submit('T-1', 'ann')).toMatchObject({ state: 'REVIEWING' });
});

test('of eight who answer at once exactly three make the quorum, and the task passes once', async () => {
  const crowd = Array.from({ length: 8 }, (_, at) => ({ id: `p${at}`, roles: ['reviewer'] }));
  await room.people(...crowd);
  room.terms.policies = [policy({ policy_id: 'three', min_approvers: 3 })];
  for (let round = 0; round < 10; round++) {
    const task = `T-${round}`;
    await reviewed(task);
    const outcomes = await Promise.all(crowd.map(({ id }) => say(task, id, 'approve')));
    expect(outcomes.filter((one) => one === 'APPROVED')).toHaveLength(1);
    expect(outcomes.filter((one) => one === 'REVIEWING')).toHaveLength(2);
    expect(outcomes.filter((one) => one === 'APPROVAL_SETTLED')).toHaveLength(5);
    expect(await approvedEvents()).toBe(round + 1);
  }
  await room.people(...crowd.map((one) => ({ ...one, isActive: false })));
});

test('of a last approval and a refusal at once one comes first, and the other learns that it is settled', async () => {
  for (let round = 0; round < 10; round++) {
    const task = `T-${round}`;
    await reviewed(task);
    const outcomes = await Promise.all([say(task, 'rob', 'approve'), say(task, 'rita', 'reject')]);
    const state = await room.state(task);
    expect(['APPROVED', 'REJECTED']).toContain(state);
    expect(outcomes.toSorted()).toEqual([state, 'APPROVAL_SETTLED'].toSorted());
  }
});

describe('what changes between question and answer', () => {
  test('a role that was taken away counts no more, and one that was given is not asked until it is asked anew', async () => {
    await reviewed();
    await room.people({ id: 'rob', roles: ['author'] });
    expect(await say('T-1', 'rob', 'approve')).toBe('APPROVAL_DENIED');
    await room.people({ id: 'new', roles: ['reviewer'] });
    expect(await room.requestOf('T-1', 'new')).toBe('T-1.0');
    await room.people({ id: 'new', roles: ['reviewer'], isActive: false });
  });

  test('a delegation that ended takes the right to answer with it', async () => {
    const all = { kind: 'instead' as const, conditions: {}, cascade: true, by: 'rob' };
    await room.delegations.add({ owner_id: 'rob', policy_id: 'leave', delegate_to: 'mia', ...all });
    await room.people({ id: 'mia', roles: ['author'] });
    await reviewed();
    expect((await room.approvals.desk.about('T-1')).find(({ reviewer_id }) => reviewer_id === 'mia')).toMatchObject({
      delegation_chain: ['rob', 'mia'],
    });
    await room.delegations.remove('rob', 'leave');
    expect(await say('T-1', 'mia', 'approve')).toBe('APPROVAL_DENIED');
  });
});

test('a task that nobody else can agree to is refused, not stuck', async () => {
  room.terms.policies = [policy({ policy_id: 'many', min_approvers: 6 })];
  await room.draft('T-1');
  await expect(room.approvals.submit('T-1', 'ann')).rejects.toMatchObject({ code: 'NOBODY_TO_ASK' });
  expect(await room.state('T-1')).toBe('DRAFT');
});

describe('a batch', () => {
  const batch = async (ids: readonly string[], isDry = false) => {
    const answers = await Promise.all(
      ids.map(async (task) => ({
        approval: await room.requestOf(task, 'rob'),
        action: 'approve' as const,
        reason: '',
      })),
    );
    return (await room.approvals.answerAll('rob', answers, { isDry })).map(codeOf);
  };

  test('answers all or nothing, and says for each what stands against it', async () => {
    for (const task of ['T-1', 'T-2', 'T-3']) await reviewed(task);
    await reviewed('T-own', 'rob');
    expect(await batch(['T-1', 'T-2', 'T-own'])).toEqual(['REVIEWING', 'REVIEWING', 'APPROVAL_UNKNOWN']);
    expect(await Promise.all(['T-1', 'T-2'].map((task) => room.state(task)))).toEqual(['REVIEWING', 'REVIEWING']);
    expect(await batch(['T-1', 'T-2', 'T-3'], true)).toEqual(['REVIEWING', 'REVIEWING', 'REVIEWING']);
    expect(await room.state('T-1')).toBe('REVIEWING');
    expect(await batch(['T-1', 'T-2', 'T-3'])).toEqual(['APPROVED', 'APPROVED', 'APPROVED']);
  });

  test('has nothing critical in it', async () => {
    await reviewed('T-1');
    room.terms.thresholds = { auto_approve: 1, medium: 2, high: 3, critical: 4 };
    expect(await batch(['T-1'])).toEqual(['APPROVAL_DENIED']);
    expect(await room.state('T-1')).toBe('REVIEWING');
  });
});

describe('what a batch may ask for besides', () => {
  const small = (id: string) => ({
    resources: [{ type: parseId('resourceType', 'note'), id, mode: 'exclusive' as const }],
  });
  const asked = async (task: string, more = {}) => {
    await room.draft({ task_id: task, ...small(task), ...more });
    await room.approvals.submit(task, 'ann');
    return { approval: await room.requestOf(task, 'ada'), action: 'approve' as const, reason: '' };
  };
  const answer = async (answers: Awaited<ReturnType<typeof asked>>[], wishes: BatchWishes) =>
    (await room.approvals.answerAll('ada', answers, wishes)).map((one) =>
      'error' in one ? one.error.message : one.state,
    );

  test('a task whose risk has risen since it was asked is refused, unless an admin skips looking', async () => {
    const one = await asked('T-1');
    const low = room.terms.thresholds;
    for (const id of ['D-1', 'D-2', 'D-3', 'D-4', 'D-5']) {
      await room.draft({ task_id: id, depends_on: [parseId('task', 'T-1')] });
    }
    expect(await answer([one], { isDry: true })).toEqual([expect.stringContaining('has risen from')]);
    expect(await answer([one], {})).toEqual([expect.stringContaining('has risen from')]);
    expect(await room.state('T-1')).toBe('REVIEWING');
    room.terms.thresholds = { ...low, auto_approve: 1 };
    expect(await answer([one], { skipValidation: true })).toEqual([expect.stringContaining('is not below 1')]);
    room.terms.thresholds = low;
    expect(await answer([one], { skipValidation: true })).toEqual(['APPROVED']);
  });

  test('what passes is handed out first, and each is audited with what was asked for', async () => {
    await room.add({ task_id: 'F-1', origin: 'prd', priority: 1 });
    const answers = [await asked('T-1', { priority: 9 }), await asked('T-2', { priority: 9, depends_on: ['F-1'] })];
    expect(await answer(answers, { applyImmediately: true })).toEqual(['APPROVED', 'APPROVED']);
    expect(await room.queue()).toEqual(['T-1', 'F-1']);
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ task: { task_id: 'T-1' } });
    const rows = await room.client.xrange(room.keys.auditOutbox(), '-', '+');
    const details = rows.flatMap(([, fields]) =>
      fields.includes('detail') ? fields[fields.indexOf('detail') + 1]! : [],
    );
    expect(details.filter((one) => one.includes('"apply_immediately":true'))).toHaveLength(2);
  });

  test('never gets past four eyes, the content, or the state', async () => {
    const good = await asked('T-1');
    await room.draft({ task_id: 'T-own', ...small('own') }, 'ada');
    await room.approvals.submit('T-own', 'ada');
    const own = { ...good, approval: await room.requestOf('T-own', 'rob') };
    const stale = { ...(await asked('T-3')), hash: 'f'.repeat(64) };
    const settled = await asked('T-4');
    await room.approve('T-4', 'rob');
    const wishes = { skipValidation: true, applyImmediately: true };
    const said = await room.approvals.answerAll('ada', [good, own, stale, settled], wishes);
    expect(said.map(codeOf)).toEqual(['REVIEWING', 'APPROVAL_DENIED', 'APPROVAL_STALE', 'APPROVAL_SETTLED']);
    expect([await room.state('T-1'), await room.state('T-own')]).toEqual(['REVIEWING', 'REVIEWING']);
  });

  test('is none or all when the connection is cut in the middle', async () => {
    const answers = await Promise.all(['T-1', 'T-2', 'T-3'].map((task) => asked(task)));
    const outcome = room.approvals.answerAll('ada', answers).catch(() => 'lost');
    await room.plain.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await outcome;
    const pinged = () => room.client.ping().catch(() => undefined);
    await until('a connection', pinged);
    const states = new Set(await Promise.all(['T-1', 'T-2', 'T-3'].map((task) => room.state(task))));
    expect(states.size).toBe(1);
  });
});

describe('doing without one policy', () => {
  const why = { reason: 'on a plane', ticket: 'INC-2' };
  const waive = (by: string, name = 'data') => room.approvals.waive('T-1', name, by, why);

  test('takes two admins, ends the questions that only it asked, and leaves the others to be met', async () => {
    await room.people({ id: 'eve', roles: ['admin'] });
    room.terms.policies = [
      policy({ policy_id: 'data', required_roles: ['dba'] }),
      policy({ policy_id: 'admins', required_roles: ['admin'] }),
    ];
    await reviewed();
    expect(await waive('ada')).toMatchObject({ outcome: 'waiting' });
    await expect(waive('ada')).rejects.toMatchObject({ code: 'OVERRIDE_DENIED' });
    await expect(waive('eve', 'none')).rejects.toMatchObject({ code: 'POLICY_UNKNOWN' });
    expect(await waive('eve')).toMatchObject({ outcome: 'waived', first: 'ada', state: 'REVIEWING' });
    const open = (await room.approvals.desk.about('T-1')).filter(({ status }) => status === 'PENDING');
    expect(open.map(({ reviewer_id }) => reviewer_id).sort()).toEqual(['ada', 'eve']);
    expect(await room.approve('T-1', 'ada')).toBe('APPROVED');
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
    await room.people({ id: 'eve', roles: ['admin'], isActive: false });
  });

  test('lets it pass if nothing else is asked for, or the rest has been met already; asking for another thing is another question', async () => {
    room.terms.policies = [policy({ policy_id: 'data', required_roles: ['dba'] })];
    await reviewed();
    await room.approvals.force('T-1', 'ada', why);
    expect(await waive('eve')).toMatchObject({ outcome: 'waiting' });
    expect(await waive('ada')).toMatchObject({ outcome: 'waived', state: 'APPROVED' });
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
  });
});

describe('passing it on by hand', () => {
  test('the other one answers in the place of the first, who has nothing more to say', async () => {
    room.terms.policies = [policy({ policy_id: 'data', required_roles: ['dba'] })];
    await reviewed();
    const approval = await room.requestOf('T-1', 'dan');
    const asked = await room.approvals.delegate(approval, 'dan', { to: 'rita', reason: '' });
    expect(await room.requestOf('T-1', 'rita')).toBe(asked);
    expect(codeOf((await room.approvals.answer('dan', [{ approval, action: 'approve', reason: '' }]))[0])).toBe(
      'APPROVAL_SETTLED',
    );
    expect(await room.approve('T-1', 'rita')).toBe('APPROVED');
  });

  test('is refused to the author, to strangers, back to who had it, and where too few different people would be left', async () => {
    room.terms.policies = [policy({ policy_id: 'data', required_roles: ['dba'], min_approvers: 2 })];
    await reviewed();
    const approval = await room.requestOf('T-1', 'dan');
    for (const to of ['ann', 'nobody', 'dan', 'dora']) {
      const refused = room.approvals.delegate(approval, 'dan', { to, reason: '' });
      await expect(refused).rejects.toMatchObject({ code: 'APPROVAL_DENIED' });
    }
  });
});

describe('breaking the glass', () => {
  const ask = (by: string) => room.approvals.force('T-1', by, { reason: 'down', ticket: 'INC-1' });

  test('takes two different admins, the second of whom did not make it, within the hour and about the same content', async () => {
    await room.people({ id: 'eve', roles: ['admin'] });
    await reviewed('T-1', 'ada');
    expect(await ask('ada')).toMatchObject({ outcome: 'waiting' });
    await expect(ask('ada')).rejects.toMatchObject({ code: 'OVERRIDE_DENIED' });
    room.shift(3_600_000);
    expect(await ask('eve')).toMatchObject({ outcome: 'waiting' });
    await expect(ask('ada')).rejects.toMatchObject({ code: 'OVERRIDE_DENIED' });
    await edit('T-1', 'other', 'ann');
    expect(await ask('eve')).toMatchObject({ outcome: 'waiting' });
    expect(await ask('bea')).toMatchObject({ outcome: 'forced', first: 'eve' });
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'claimed' });
    await expect(ask('eve')).rejects.toMatchObject({ code: 'TASK_STATE' });
    await room.people({ id: 'eve', roles: ['admin'], isActive: false });
  });

  test('is for this content only: an edit after it stands before the gate again', async () => {
    await reviewed();
    await ask('ada');
    await ask('eve');
    await edit('T-1', 'other', 'ann');
    expect(await room.state('T-1')).toBe('REVIEWING');
  });
});

describe('the claim looks again', () => {
  test.each([
    ['the votes are gone', () => room.client.del(room.keys.approvalVotes('T-1'))],
    ['the count is gone', () => room.client.del(room.keys.taskApprovalStats('T-1'))],
    [
      'the content is another',
      () => room.client.set(room.keys.taskData('T-1'), JSON.stringify(aTask({ task_id: 'T-1' }))),
    ],
    ['its hash is another', () => room.client.hset(room.keys.taskConfig('T-1'), 'config_hash', 'x')],
  ])('and hands nothing out if %s', async (_, tamper) => {
    await room.draft({ task_id: 'T-1', description: 'as agreed' });
    await room.approvals.submit('T-1', 'ann');
    await room.approve('T-1', 'rob');
    await tamper();
    expect(await room.tasks.work.claim({ agent: 'ag-1' })).toMatchObject({ outcome: 'none' });
    expect([await room.state('T-1'), await room.status('T-1')]).toEqual(['SUBMITTED', 'blocked']);
    expect(await room.approvals.askLeftOnce()).toBe(1);
    expect(await room.state('T-1')).toBe('REVIEWING');
  });
});

test('an inbox shows the worst first, of equals the one that is due first, in pages that do not repeat', async () => {
  for (const [at, urgency] of (['LOW', 'URGENT', 'NORMAL', 'HIGH', 'NORMAL'] as const).entries()) {
    await room.draft({ task_id: `T-${at}`, urgency });
    await room.approvals.submit(`T-${at}`, 'ann');
    room.shift(1_000);
  }
  const seen: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await room.approvals.desk.inbox('rob', 2, cursor);
    seen.push(...page.items.map(({ task_id }) => task_id));
    cursor = page.next;
    if (cursor === undefined) break;
  }
  expect(seen).toEqual(['T-1', 'T-3', 'T-2', 'T-4', 'T-0']);
  const stats = await room.client.hgetall(room.keys.userApprovalStats('rob'));
  expect(stats.pending_count).toBe('5');
  await room.approve('T-1', 'rob');
  expect(await room.client.hgetall(room.keys.userApprovalStats('rob'))).toMatchObject({
    pending_count: '4',
    approved_today: '1',
  });
});
