import { expect, test } from 'vitest';
import { inATaskRoom, type Sketch, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const COUNT = 10_000;
const AGENTS = 50;
const id = (n: number) => `T-${n}`;
const numbers = Array.from({ length: COUNT }, (_, n) => n);

const SHAPES: Readonly<Record<string, (n: number) => Sketch>> = {
  'a chain': (n) => ({ task_id: id(n), depends_on: n > 0 ? [id(n - 1)] : [] }),
  'a star': (n) => ({ task_id: id(n), depends_on: n > 0 ? [id(0)] : [] }),
  'a hundred layers of a hundred': (n) => ({
    task_id: id(n),
    depends_on: n >= 100 ? [id(n - 100), id(n - 100 - (n % 100) + ((n + 1) % 100))] : [],
  }),
};

test.each(Object.keys(SHAPES))(
  '%s of 10,000 tasks loads and drains, each task once',
  { timeout: 120_000 },
  async (shape) => {
    await room.add(...numbers.map(SHAPES[shape]!));
    expect(await room.client.llen(room.keys.taskQueue())).toBeLessThanOrEqual(USUAL.window);
    const done: string[] = [];
    const { work } = room.tasks;
    const agent = async (name: string) => {
      while (done.length < COUNT) {
        const claimed = await work.claim({ agent: name, leaseClass: 'process' });
        if (claimed.outcome !== 'claimed') {
          await new Promise(setImmediate);
          continue;
        }
        const { task, lease } = claimed;
        const ended = await work.complete({ task: task.task_id, agent: name, lockId: lease.lock_id });
        if (ended.outcome === 'completed') done.push(task.task_id);
      }
    };
    // A chain has work for one at a time; more would only ask in vain.
    const agents = shape === 'a chain' ? 2 : AGENTS;
    await Promise.all(Array.from({ length: agents }, (_, n) => agent(`a${n}`)));
    expect(new Set(done).size).toBe(COUNT);
    expect(await room.tasks.views.progress()).toMatchObject({ total: COUNT, completed: COUNT, pending: 0, blocked: 0 });
    expect(await room.client.exists(room.keys.readyOrder(), room.keys.taskQueue(), room.keys.lockRegistry())).toBe(0);
  },
);

test('the public list shows the best of what is ready, in order, however it changes', async () => {
  room.limits = { ...USUAL, window: 20 };
  await room.add(...numbers.slice(0, 60).map((n) => ({ task_id: id(n), priority: (n * 7) % 60 })));
  const best = async () => room.client.zrange(room.keys.readyOrder(), '0', '19');
  expect(await room.queue()).toEqual(await best());
  for (let n = 0; n < 45; n++) {
    await room.tasks.work.claim({ agent: `a${n}` });
    expect(await room.queue()).toEqual(await best());
  }
  for (let n = 0; n < 45; n++) {
    const [held] = await room.client.hkeys(room.keys.agentClaims(`a${n}`));
    await room.tasks.work.drop({ task: held!, agent: `a${n}` }, 'back');
    expect(await room.queue()).toEqual(await best());
  }
});
