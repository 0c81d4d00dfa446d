import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { operations } from '../../src/operations/index.ts';
import { aTask } from '../coordinator/tasks/room.ts';
import { anOpenDoor, echo } from '../http/door.ts';
import { plainEnv, REEVE } from '../support/cli.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { targetOf, theRooms } from '../support/rooms.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());

const offered = [...operations, echo];
const aDoor = async () => anOpenDoor(await theRooms(targetOf(redis.options)), { operations: offered });
const tools = (list: typeof offered) => list.flatMap(({ mcp }) => (mcp ? [mcp.tool] : [])).toSorted();

async function connect(client: Client, transport: Parameters<Client['connect']>[0]): Promise<Client> {
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

const aClient = (mode: 'auto' | 'legacy') =>
  new Client({ name: 'test', version: '1' }, mode === 'auto' ? { versionNegotiation: { mode } } : {});

describe.each(['auto', 'legacy'] as const)('over HTTP, with a client in %s mode', (mode) => {
  const open = async () => {
    const door = await aDoor();
    return connect(aClient(mode), new StreamableHTTPClientTransport(new URL('/mcp', door.url)));
  };

  test('there is one tool for each operation that names one', async () => {
    const client = await open();
    const { tools: listed } = await client.listTools();

    expect(listed.map(({ name }) => name).toSorted()).toEqual(tools(offered));
    expect(listed.find(({ name }) => name === 'get_briefing')).toMatchObject({
      description: expect.stringContaining('Start here'),
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: false },
    });
  });

  test('a tool answers with what its operation does, as text and as data', async () => {
    const client = await open();
    const answer = await client.callTool({ name: 'get_briefing', arguments: {} });
    const [block] = answer.content as { type: string; text: string }[];

    expect(answer.isError ?? false).toBe(false);
    expect(answer.structuredContent).toMatchObject({ you: 'local', state: 'ready', next: expect.any(String) });
    expect(JSON.parse(block!.text)).toEqual(answer.structuredContent);
    // A model pays for every word: about four letters make a token.
    expect(block!.text.length).toBeLessThan(2_000 * 4);
  });

  test.each([
    [{ id: 'x', times: 9 }, 'times'],
    [{ id: 'x', tims: 1 }, 'tims'],
    [{}, 'id'],
  ])('arguments that are wrong, %j, are answered with what is wrong and what to do', async (args, named) => {
    const client = await open();
    const answer = await client.callTool({ name: 'echo', arguments: args });
    const [block] = answer.content as { text: string }[];

    expect(answer.isError).toBe(true);
    expect(JSON.parse(block!.text)).toEqual({
      code: 'INVALID_INPUT',
      why: expect.stringContaining(named),
      fix: expect.stringMatching(/\S/),
    });
  });

  test('a server says what it is for', async () => {
    const client = await open();

    expect(client.getServerVersion()).toMatchObject({ name: 'reeve' });
    expect(client.getInstructions()).toContain('get_briefing');
  });
});

describe('over HTTP', () => {
  test('a failure of Redis is an answer with a code, not a broken protocol', async () => {
    const own = await startTestRedis();
    const rooms = await theRooms(targetOf(own.options));
    const events = operations.find(({ name }) => name === 'events.list')!;
    const tool = { tool: 'list_events', description: 'Lists.', readOnly: true, idempotent: true };
    const door = await anOpenDoor(rooms, { operations: [{ ...events, mcp: tool }] });
    const client = await connect(aClient('auto'), new StreamableHTTPClientTransport(new URL('/mcp', door.url)));
    await own.stop();
    const answer = await client.callTool({ name: 'list_events', arguments: {} });

    expect(answer.isError).toBe(true);
    expect(JSON.parse((answer.content as { text: string }[])[0]!.text)).toMatchObject({
      code: expect.stringMatching(/^REDIS_/),
      fix: expect.any(String),
    });
  });

  test('what was done while Redis was away is noted, as over any other door', async () => {
    const own = await startTestRedis();
    const rooms = await theRooms(targetOf(own.options));
    const door = await anOpenDoor(rooms, { operations });
    await rooms.tasks.admit([{ task: aTask({ task_id: 'T-1' }), phase: 'open' }]);
    const client = await connect(aClient('auto'), new StreamableHTTPClientTransport(new URL('/mcp', door.url)));
    const use = async (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args });
    const { structuredContent: claimed } = await use('claim_task', { task_id: 'T-1', agent: 'ag-1' });
    const { lease } = claimed as { lease: string };
    await own.stop();
    const answer = await use('finish_task', { lease, outcome: 'completed', summary: 'done' });

    expect(answer.isError ?? false).toBe(false);
    expect(answer.structuredContent).toEqual({ journal_id: expect.stringMatching(/^jrn_/), next: expect.any(String) });
    expect(await rooms.journal.list(10)).toMatchObject([{ operation: 'work.finish', state: 'waiting' }]);
    const lost = await use('report_progress', { lease, note: 'well' });
    expect(lost.isError).toBe(true);
  });

  test('a page of another site cannot call a tool', async () => {
    const door = await aDoor();
    const response = await door.get('/mcp', {
      method: 'POST',
      headers: { origin: 'https://evil.example', 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });

    expect(response.status).toBe(403);
  });
});

describe('over standard input and output', () => {
  const stdio = async (url: string) => {
    const cwd = await mkdtemp(join(tmpdir(), 'reeve-mcp-'));
    onTestFinished(() => rm(cwd, { recursive: true, force: true }));
    const env = Object.fromEntries(
      Object.entries(plainEnv()).filter((pair): pair is [string, string] => pair[1] !== undefined),
    );
    return new StdioClientTransport({ command: REEVE, args: ['mcp', '--url', url], cwd, env, stderr: 'pipe' });
  };

  test.each(['auto', 'legacy'] as const)('reeve mcp offers the same tools to a client in %s mode', async (mode) => {
    const door = await aDoor();
    const client = await connect(aClient(mode), await stdio(door.url));
    const { tools: listed } = await client.listTools();
    const answer = await client.callTool({ name: 'get_briefing', arguments: {} });

    expect(listed.map(({ name }) => name).toSorted()).toEqual(tools(operations as typeof offered));
    expect(answer.structuredContent).toMatchObject({ you: expect.stringMatching(/^mcp-/), state: 'ready' });
  });

  test('a daemon that has gone away is an answer with a code', async () => {
    const door = await aDoor();
    const client = await connect(aClient('legacy'), await stdio(door.url));
    await door.stop();
    const answer = await client.callTool({ name: 'get_briefing', arguments: {} });

    expect(answer.isError).toBe(true);
    expect(JSON.parse((answer.content as { text: string }[])[0]!.text)).toMatchObject({ code: 'DAEMON_UNREACHABLE' });
  });
});
