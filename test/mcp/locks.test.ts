import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { anOpenDoor } from '../http/door.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { targetOf, theRooms } from '../support/rooms.ts';

let redis: TestRedis;
let client: Client;
beforeAll(async () => {
  redis = await startTestRedis();
});
beforeEach(async () => {
  const door = await anOpenDoor(await theRooms(targetOf(redis.options)));
  client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', door.url)));
  onTestFinished(() => client.close());
  onTestFinished(() => redis.flush());
});
afterAll(() => redis.stop());

async function use(name: string, args: Record<string, unknown>) {
  const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: args });
  const [block] = content as { text: string }[];
  return { isError, answer: (structuredContent ?? JSON.parse(block?.text ?? '{}')) as Record<string, string> };
}

test('a model takes a lock with a long lease, and gives it back', async () => {
  const { answer } = await use('acquire_lock', { resource: 'db:prod', agent: 'model', purpose: 'migrating' });
  expect(answer).toMatchObject({ outcome: 'held', fencing_token: expect.any(Number) });
  expect(Date.parse(answer.expires_at ?? '') - Date.now()).toBeGreaterThan(800_000);
  const mine = { lock_id: answer.lock_id };
  expect((await use('release_lock', mine)).answer).toMatchObject({ outcome: 'released', lock: 'resource:db:prod' });
  expect((await use('release_lock', mine)).answer).toMatchObject({ outcome: 'already' });
});

test('a model that is held back is told why, and what to do', async () => {
  await use('acquire_lock', { resource: 'db:prod', agent: 'first', purpose: 'migrating' });
  const refused = await use('acquire_lock', { resource: 'resource:db:prod', agent: 'second' });
  expect(refused).toMatchObject({
    isError: true,
    answer: { code: 'LOCK_HELD', why: expect.stringContaining('first holds resource:db:prod for "migrating"') },
  });
  const queued = await use('acquire_lock', { resource: 'db:prod', agent: 'second', wait_seconds: 0.1 });
  expect(queued).toMatchObject({ isError: false, answer: { outcome: 'queued', position: 1, holder: 'first' } });
  const why = await use('explain', { ref: 'resource:db:prod' });
  expect(why.answer).toMatchObject({ state: 'held', next: expect.stringContaining('reeve lock acquire') });
  const again = { resource: 'db:prod', lock_id: queued.answer.lock_id };
  expect((await use('acquire_lock', again)).answer).toMatchObject({ outcome: 'queued', position: 1 });
  expect((await use('release_lock', { lock_id: queued.answer.lock_id })).answer).toMatchObject({ outcome: 'left' });
});

test.each([
  ['release_lock', { lock_id: 'nonsense' }],
  ['report_progress', { lease: 'nonsense', note: 'x' }],
])('%s refuses a handle that it did not give', async (tool, args) => {
  expect(await use(tool, args)).toMatchObject({ isError: true, answer: { code: 'USAGE' } });
});
