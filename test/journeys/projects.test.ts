import { afterAll, beforeAll, expect, test } from 'vitest';
import { reeve } from '../support/cli.ts';
import { spawnDaemon, startDaemon, type TestDaemon } from '../support/daemon.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

let redis: TestRedis;
let odyssey: TestDaemon;
let apollo: TestDaemon;
beforeAll(async () => {
  redis = await startTestRedis();
  const { path } = redis.options;
  const env = { REDIS_URL: `unix://:${redis.password}@${path}` };
  odyssey = await startDaemon({ env });
  apollo = await startDaemon({ env, args: ['--project', 'apollo-11'] });
}, 120_000);
afterAll(async () => {
  await Promise.all([odyssey?.[Symbol.asyncDispose](), apollo?.[Symbol.asyncDispose]()]);
  await redis?.stop();
});

const ask = async ({ cwd }: TestDaemon, command: string) => {
  const { code, stdout } = await reeve([...command.split(' '), '--json'], { cwd });
  return { code, answer: stdout === '' ? undefined : JSON.parse(stdout) };
};

test('two projects with the same task ids live side by side in one Redis', async () => {
  const client = redis.client();
  // Both work on the sample, whose tasks and files have the same names.
  for (const [daemon, agent] of [
    [odyssey, 'ann'],
    [apollo, 'ben'],
  ] as const) {
    const { code, answer } = await ask(daemon, `next --agent ${agent} --task TASK-001`);
    expect({ code, task: answer.task.task_id }).toEqual({ code: 0, task: 'TASK-001' });
  }
  expect(await client.get('odyssey:task:TASK-001:status')).toBe('assigned');
  expect(await client.hget('ade:lock:task:TASK-001', 'holder_agent_id')).toBe('ann');
  expect(await client.hget('ade:lock:task:apollo-11.TASK-001', 'holder_agent_id')).toBe('ben');
  expect(await client.exists('ade:lock:resource:file:package.json')).toBe(1);
  expect(await client.exists('ade:lock:resource:file:apollo-11%3Apackage.json')).toBe(1);

  expect((await ask(apollo, 'done TASK-001 --agent ben')).code).toBe(0);
  expect((await ask(odyssey, 'progress')).answer).toMatchObject({ total: 10, completed: 0, in_progress: 1 });
  expect((await ask(apollo, 'progress')).answer).toMatchObject({ total: 10, completed: 1 });
  expect(await client.get('ade:task:apollo-11.TASK-001:state')).toBe('COMPLETED');
  expect(await client.get('ade:task:TASK-001:state')).toBe('APPLYING');
  expect((await ask(apollo, 'task list --resource package.json')).answer.items).toMatchObject([
    { task_id: 'TASK-001', station: 'done' },
  ]);

  await until('both have their functions', async () => {
    const names = JSON.stringify(await client.call('FUNCTION', 'LIST'));
    return names.includes('odyssey_claim') && names.includes('apollo_11_claim');
  });
  expect(await client.call('FCALL', 'apollo_11_claim', '0', 'bob')).toContain('TASK-002');

  expect((await ask(apollo, 'task reset all --yes')).code).toBe(0);
  expect((await ask(odyssey, 'progress')).answer).toMatchObject({ total: 10, in_progress: 1 });
  expect((await ask(odyssey, 'done TASK-001 --agent ann')).code).toBe(0);
});

test.each(['ade', 'asset', 'task', 'project'])('no project is called %s', async (project) => {
  await using daemon = await spawnDaemon({ args: ['--project', project] });
  expect(await daemon.exited).toBe(2);
  expect(daemon.complaints).toContain('project');
});
