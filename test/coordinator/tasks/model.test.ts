import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());

const TASKS = ['T0', 'T1', 'T2', 'T3', 'T4', 'T5'] as const;
const AGENTS = ['ann', 'ben', 'cat'] as const;
/** T2 needs T0 and T1, T3 needs T2; T4 and T5 work on the same file. */
const NEEDS: Readonly<Record<string, readonly string[]>> = { T2: ['T0', 'T1'], T3: ['T2'] };
const FILES: Readonly<Record<string, string>> = { T4: 'src/', T5: 'src/a.ts' };

/** What the queue should be, as simply as it can be said. */
class Model {
  readonly done = new Set<string>();
  readonly failed = new Set<string>();
  readonly held = new Map<string, string>();
  /** Who had it last: one who gives it back is told so again, however it came back. */
  readonly last = new Map<string, string>();
  readonly attempts = new Map<string, number>();

  isReady(task: string): boolean {
    const isOpen = !this.done.has(task) && !this.failed.has(task) && !this.held.has(task);
    return isOpen && (NEEDS[task] ?? []).every((need) => this.done.has(need)) && !this.collides(task);
  }
  collides(task: string): boolean {
    return Boolean(FILES[task]) && [...this.held.keys()].some((other) => other !== task && Boolean(FILES[other]));
  }
  next(): string | undefined {
    return TASKS.find((task) => this.isReady(task));
  }
  taskOf(agent: string): string | undefined {
    return [...this.held].find(([, holder]) => holder === agent)?.[0];
  }
  /** An attempt that counts; true if it was the last. */
  spend(task: string): boolean {
    this.held.delete(task);
    const spent = (this.attempts.get(task) ?? 0) + 1;
    this.attempts.set(task, spent);
    if (spent >= USUAL.maxAttempts) this.failed.add(task);
    return spent >= USUAL.maxAttempts;
  }
}

type Step = fc.AsyncCommand<Model, TaskRoom>;
const step = (name: string, run: (model: Model, room: TaskRoom) => Promise<void>): Step => ({
  check: () => true,
  run,
  toString: () => name,
});

const agent = fc.constantFrom(...AGENTS);
const task = fc.constantFrom(...TASKS);
const steps = [
  agent.map((who) =>
    step(`${who} claims`, async (model, { tasks }) => {
      const expected = model.taskOf(who) ?? model.next();
      const claimed = await tasks.work.claim({ agent: who, leaseClass: 'process' });
      expect(claimed.outcome === 'claimed' ? claimed.task.task_id : undefined).toBe(expected);
      if (!expected) return;
      model.held.set(expected, who);
      model.last.set(expected, who);
    }),
  ),
  fc.tuple(agent, task).map(([who, id]) =>
    step(`${who} completes ${id}`, async (model, { tasks }) => {
      const isMine = model.held.get(id) === who;
      const { outcome } = await tasks.work.complete({ task: id, agent: who });
      expect(outcome === 'completed').toBe(isMine);
      if (!isMine) return;
      model.held.delete(id);
      model.done.add(id);
    }),
  ),
  fc.tuple(agent, task).map(([who, id]) =>
    step(`${who} fails at ${id}`, async (model, current) => {
      const isMine = model.held.get(id) === who;
      const { outcome } = await current.tasks.work.fail({ task: id, agent: who }, { error: 'boom' });
      expect(isMine ? [outcome] : ['late', 'already']).toContain(outcome);
      if (!isMine) return;
      expect(outcome).toBe(model.spend(id) ? 'failed' : 'retry');
      // Past every back-off, and within every lease that the agents renew.
      for (let beat = 0; beat < 2; beat++) {
        current.shift(10_000);
        for (const [held, holder] of model.held) await current.tasks.work.heartbeat({ task: held, agent: holder });
        await current.tasks.dueOnce();
      }
    }),
  ),
  fc.tuple(agent, task).map(([who, id]) =>
    step(`${who} drops ${id}`, async (model, { tasks }) => {
      const isMine = model.held.get(id) === who;
      const isBack = !model.held.has(id) && !model.done.has(id) && !model.failed.has(id) && model.last.get(id) === who;
      const { outcome } = await tasks.work.drop({ task: id, agent: who }, 'back');
      expect(outcome === 'dropped').toBe(isMine || isBack);
      if (isMine) model.held.delete(id);
    }),
  ),
  fc.constant(
    step('everyone falls silent', async (model, current) => {
      current.shift(31_000);
      const { lost } = await current.tasks.dueOnce();
      expect([...lost].sort()).toEqual([...model.held.keys()].sort());
      for (const id of [...model.held.keys()]) model.spend(id);
    }),
  ),
];

test('the queue does what a few lines say it should, whatever agents do', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(steps, { maxCommands: 40 }), async (commands) => {
      await room.reset();
      await room.add(
        ...TASKS.map((id) => ({
          task_id: id,
          depends_on: [...(NEEDS[id] ?? [])],
          files_to_modify: FILES[id] ? [FILES[id]] : [],
        })),
      );
      const model = new Model();
      await fc.asyncModelRun(() => ({ model, real: room }), commands);
      const views = await room.tasks.views.progress();
      expect(views).toMatchObject({
        completed: model.done.size,
        failed: model.failed.size,
        in_progress: model.held.size,
      });
      await expectSound(room);
    }),
    { numRuns: 150 },
  );
});
