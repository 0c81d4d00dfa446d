import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { silentLog } from '../../../src/log.ts';
import { contradictions } from './invariants.ts';
import { FILES, NEEDS, Paper, POLICY, TASKS } from './paper.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
let reconciler: Reconciler;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(() => {
  const { tasks, locks, events } = room;
  const keyspace = { mode: 'standalone' } as const;
  const limits = () => room.limits;
  reconciler = new Reconciler({ tasks, locks, events, keyspace, clock: systemClock, log: silentLog, limits });
});

const AGENTS = ['ann', 'ben', 'cat'] as const;
type Step = fc.AsyncCommand<Paper, TaskRoom>;

/** After each step nothing contradicts anything, and what is held, ended and counted is what the paper says. */
const step = (name: string, run: (paper: Paper, real: TaskRoom) => Promise<void>): Step => ({
  check: () => true,
  run: async (paper, real) => {
    await run(paper, real);
    expect([name, await contradictions(real)]).toEqual([name, []]);
    const records = await real.tasks.store.records(TASKS, ['status', 'agent']);
    const found = TASKS.map((id, at) => `${id} ${stateOf(records[at] as [string, string])}`);
    expect([name, found]).toEqual([name, TASKS.map((id) => `${id} ${paperState(paper, id)}`)]);
  },
  toString: () => name,
});
const stateOf = ([status, agent]: readonly [string, string | null]): string =>
  status === 'assigned' || status === 'in_progress' ? `held by ${agent}` : status;
const paperState = (paper: Paper, id: string): string => {
  const end = paper.ended.get(id);
  if (end) return end === 'done' ? 'completed' : 'failed';
  const holder = paper.held.get(id);
  if (holder) return `held by ${holder.agent}`;
  const isKept = paper.isPaused && !paper.popped.has(id);
  return paper.isReady(id) && !isKept ? 'pending' : 'blocked';
};

/** Now and then the answer is lost, and the same is asked again. */
async function asked<T>(isLost: boolean, ask: () => Promise<T>): Promise<T> {
  if (isLost) await ask();
  return ask();
}

const agent = fc.constantFrom(...AGENTS);
const task = fc.constantFrom(...TASKS);
const isLost = fc.boolean();
let claims = 0;

const work = [
  fc.tuple(agent, isLost).map(([who, lost]) =>
    step(`${who} claims${lost ? ', twice' : ''}`, async (paper, { tasks }) => {
      // Whether a claim finds out that a plain client has one of two that collide depends on the way it takes.
      if (paper.popped.has('E') || paper.popped.has('F')) {
        await reconciler.once();
        paper.reconcile();
      }
      const expected = paper.claim(who);
      // With an id of its own a claim may be repeated; without one it takes the shorter way.
      const request = { agent: who, leaseClass: 'process', ...(lost && { lockId: `claim-${++claims}` }) } as const;
      const claimed = await asked(lost, () => tasks.work.claim(request));
      expect(claimed.outcome === 'claimed' ? claimed.task.task_id : undefined).toBe(expected);
      const popped = [...paper.popped];
      const records = await tasks.store.records(popped, ['agent', 'status']);
      for (const [at, id] of popped.entries()) {
        const [holder, status] = records[at] as string[];
        if (holder === `raw.${id}` && status === 'assigned') paper.trust(id);
      }
    }),
  ),
  fc.tuple(agent, task, isLost).map(([who, id, lost]) =>
    step(`${who} completes ${id}`, async (paper, { tasks }) => {
      const isMine = paper.held.get(id)?.agent === who;
      const { outcome } = await asked(lost, () => tasks.work.complete({ task: id, agent: who }));
      if (isMine) expect(outcome).toBe(lost ? 'already' : 'completed');
      else expect(['late', 'already']).toContain(outcome);
      if (isMine) paper.complete(id);
    }),
  ),
  fc
    .tuple(agent, task, isLost, fc.constantFrom('task', 'infra', 'auth', 'cancelled', 'final'))
    .map(([who, id, lost, why]) =>
      step(`${who} fails at ${id} (${why})`, async (paper, { tasks }) => {
        const isMine = paper.held.get(id)?.agent === who;
        const failure = why === 'final' ? { error: 'boom', isFinal: true } : { error: 'boom', class: why };
        const { outcome } = await asked(lost, () => tasks.work.fail({ task: id, agent: who }, failure));
        if (!isMine) {
          expect(['late', 'already']).toContain(outcome);
          return;
        }
        let expected = 'retry';
        if (why === 'task') expected = paper.spend(id, true);
        else if (why !== 'final') paper.giveBack(id, why !== 'cancelled');
        else {
          paper.fail(id);
          expected = 'failed';
        }
        expect(outcome).toBe(lost ? 'already' : expected);
      }),
    ),
  fc.tuple(agent, task, isLost).map(([who, id, lost]) =>
    step(`${who} drops ${id}`, async (paper, { tasks }) => {
      const isMine = paper.held.get(id)?.agent === who;
      const { outcome } = await asked(lost, () => tasks.work.drop({ task: id, agent: who }, 'back'));
      if (isMine) expect(outcome).toBe('dropped');
      if (isMine) paper.giveBack(id);
    }),
  ),
];

const people = [
  task.map((id) =>
    step(`a person cancels ${id}`, async (paper, { tasks }) => {
      const outcome = await tasks.cancelOne(id, 'not wanted', 'a person');
      expect(outcome).toBe(paper.ended.has(id) ? 'ended' : 'cancelled');
      if (!paper.ended.has(id)) paper.fail(id);
    }),
  ),
  fc.tuple(task, isLost).map(([id, lost]) =>
    step(`a person opens ${id} again`, async (paper, { tasks }) => {
      const outcome = await asked(lost, () => tasks.reopen(id, 'again', 'a person'));
      expect(outcome).toBe(paper.held.has(id) ? 'running' : 'open');
      paper.reopen(id);
    }),
  ),
  fc.tuple(task, fc.constantFrom('completed', 'failed', 'running', 'open')).map(([id, to]) =>
    step(`a person says that ${id} is ${to}`, async (paper, { tasks }) => {
      await tasks.judge(id, { to }, 'a person');
      paper.judge(id, to);
      if (to === 'running' && paper.held.get(id)?.agent === `raw.${id}`) paper.spoke(id);
    }),
  ),
  fc.tuple(task, fc.boolean()).map(([id, isAside]) =>
    step(`a person ${isAside ? 'puts aside' : 'takes back'} ${id}`, async (paper, { tasks }) => {
      await tasks.judge(id, { to: isAside ? 'held' : 'released' }, 'a person');
      if (isAside) paper.aside.add(id);
      else paper.aside.delete(id);
      if (isAside && paper.isOpen(id)) paper.popped.delete(id);
    }),
  ),
  fc.tuple(fc.constantFrom('E', 'F'), fc.integer({ min: 1, max: 9 })).map(([id, priority]) =>
    step(`a person gives ${id} the priority ${priority}`, async (paper, { tasks }) => {
      await tasks.amend([{ task_id: id as TaskId, set: { priority } }]);
      paper.priority.set(id, priority);
    }),
  ),
  fc.boolean().map((isPaused) =>
    step(isPaused ? 'all is paused' : 'all goes on', async (paper, { tasks }) => {
      await (isPaused ? tasks.pauses.pause('all', {}) : tasks.pauses.resume('all'));
      paper.isPaused = isPaused;
    }),
  ),
];

const plain = [
  fc.constant(
    step('a plain client pops', async (paper, { plain: redis, keys }) => {
      const found = await redis.rpop(keys.taskQueue());
      if (found) expect(paper.isReady(found) && !paper.popped.has(found) && !paper.isPaused).toBe(true);
      if (found) paper.popped.add(found);
    }),
  ),
  fc.tuple(task, fc.constantFrom('in_progress', 'completed', 'failed')).map(([id, word]) =>
    step(`the plain client that has ${id} says ${word}`, async (paper, { plain: redis, keys }) => {
      await reconciler.once();
      paper.reconcile();
      if (paper.held.get(id)?.agent !== `raw.${id}`) return;
      if (word === 'completed') await redis.set(keys.taskResult(id), '{"notes":"done"}');
      await redis.set(keys.taskStatus(id), word);
      await reconciler.once();
      if (word === 'completed') paper.complete(id);
      else if (word === 'failed') paper.spend(id, true);
      else paper.spoke(id);
    }),
  ),
];

const time = [
  fc.constant(
    step('the daemon looks', async (paper) => {
      await reconciler.once();
      paper.reconcile();
    }),
  ),
  fc.boolean().map((isSilent) =>
    step(`ten seconds pass${isSilent ? '' : ', and agents send heartbeats'}`, async (paper, real) => {
      if (!isSilent) {
        for (const [id, { agent: who }] of paper.held) {
          if (who.startsWith('raw.')) continue;
          expect(await real.tasks.work.heartbeat({ task: id, agent: who })).toMatchObject({ outcome: 'noted' });
          paper.beat(who);
        }
      }
      real.shift(10_000);
      const { lost } = await real.tasks.overdue.dueOnce();
      expect([...lost].sort()).toEqual(paper.tick());
    }),
  ),
];

test('the queue does what a few lines say it should, whatever agents, people and plain clients do', {
  timeout: 240_000,
}, async () => {
  room.limits = USUAL;
  const commands = fc.commands([...work, ...work, ...people, ...plain, ...time], { maxCommands: 60, size: 'max' });
  await fc.assert(
    fc.asyncProperty(commands, async (steps) => {
      await room.reset();
      await room.add(
        ...TASKS.map((id) => ({
          task_id: id,
          depends_on: [...(NEEDS[id] ?? [])],
          files_to_modify: FILES[id] ? [FILES[id]] : [],
          ...(POLICY[id] && { if_dependency_fails: POLICY[id] }),
        })),
      );
      const paper = new Paper();
      await fc.asyncModelRun(() => ({ model: paper, real: room }), steps);
      await expectSound(room);
    }),
    { numRuns: 60 },
  );
});
