import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { plainEnv, REEVE } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';

let daemon: TestDaemon;
let folder: TestFolder;
let admin: string;
let rob: string;
beforeAll(async () => {
  folder = testFolder();
  daemon = await startDaemon();
  const { items } = await call<{ items: { task_id: string }[] }>('GET', '/tasks');
  for (const { task_id } of items) await call('POST', `/tasks/${task_id}/cancel`, {});
  admin = (await call<{ token: string }>('POST', '/tokens', {})).token;
  await call('POST', '/users', { user: 'rob', roles: ['reviewer'] });
  rob = (await call<{ token: string }>('POST', '/tokens', { user: 'rob' })).token;
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function call<T>(method: string, path: string, body?: object, token = admin): Promise<T> {
  const response = await fetch(new URL(`/api/v1${path}`, daemon.url), {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer as T;
}

/** An agent with a token of its own, and a task for it that has the database. */
async function anAgent(agent: string) {
  await call('POST', '/users', { user: agent, roles: ['agent'] });
  const { token } = await call<{ token: string }>('POST', '/tokens', { user: agent });
  const task = { task_id: `T-${agent}`, title: 'The form', priority: 5, agent_type: agent };
  await call('POST', '/tasks/import', { tasks: [{ ...task, resources: [{ type: 'thing', id: agent }] }] });
  await call('POST', '/agents', { agent, type: agent });
  return { token, task: task.task_id };
}

const overHttp = (token: string) =>
  new StreamableHTTPClientTransport(new URL('/mcp', daemon.url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
const overStdio = (token: string) =>
  new StdioClientTransport({
    command: REEVE,
    args: ['mcp', '--url', daemon.url, '--token', token],
    cwd: folder.path,
    env: Object.fromEntries(
      Object.entries(plainEnv()).filter((pair): pair is [string, string] => pair[1] !== undefined),
    ),
    stderr: 'pipe',
  });

async function connect(transport: Parameters<Client['connect']>[0]) {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return async (name: string, args: Record<string, unknown> = {}) => {
    const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: args });
    const [block] = content as { text: string }[];
    const told = (structuredContent ?? JSON.parse(block?.text ?? '{}')) as Record<string, unknown>;
    return { isError, ...told } as Record<string, unknown>;
  };
}

const lockOf = (name: string) => call<{ holders: { agent: string }[] }>('GET', `/locks/resource:thing:${name}`);

describe.each([
  ['http', overHttp],
  ['stdio', overStdio],
] as const)('over %s', (door, transport) => {
  const agent = `model-${door}`;

  test('an agent submits a change while it works, a person agrees, and the agent makes it through its own locks', async () => {
    const { token, task } = await anAgent(agent);
    const use = await connect(transport(token));
    expect(await use('get_briefing')).toMatchObject({ you: agent, yours: [], next: 'claim_task' });
    const mine = await use('claim_task', { wait_seconds: 5 });
    expect(mine).toMatchObject({ task: { task_id: task, title: 'The form' }, again: false });
    expect(await use('claim_task')).toMatchObject({ lease: mine.lease, again: true });
    expect(
      await use('report_progress', { lease: mine.lease, note: 'half', percent: 50, files: ['a.ts'] }),
    ).toMatchObject({
      task_id: task,
    });

    const wanted = {
      lease: mine.lease,
      preview: 'ALTER TABLE form ADD COLUMN age int',
      resources: [{ type: 'thing', id: agent }],
      rollback: 'manual',
      reason: 'The form asks for the age',
    };
    const asked = await use('submit_change', wanted);
    expect(asked).toMatchObject({
      isError: false,
      outcome: 'pending',
      approvals: { needed: 1, given: 0, waiting_for: expect.arrayContaining(['rob']) },
      risk: { level: expect.any(String), factors: expect.any(Array) },
    });
    expect(await use('submit_change', wanted)).toMatchObject({ approval_id: asked.approval_id });
    const change = asked.task_id as string;
    // Its hands are full, and nobody has agreed yet: it is shown what it has.
    expect(await use('claim_task', { task_id: change })).toMatchObject({ lease: mine.lease, again: true });

    const answer = use('check_change', { approval_id: asked.approval_id, wait_seconds: 25 });
    const { items } = await call<{ items: { approval_id: string; task_id: string }[] }>(
      'GET',
      '/approvals',
      undefined,
      rob,
    );
    const request = items.find(({ task_id }) => task_id === change)!;
    await call('POST', `/approvals/${request.approval_id}/approve`, { reason: 'at night, please' }, rob);
    expect(await answer).toMatchObject({
      outcome: 'approved',
      decisions: [{ by: 'rob', action: 'approve', says: 'at night, please' }],
    });

    const child = await use('claim_task');
    expect(child).toMatchObject({ task: { task_id: change, parent_task_id: task }, again: false });
    expect((await lockOf(agent)).holders.map((one) => one.agent)).toContain(agent);
    expect(await use('get_briefing')).toMatchObject({ yours: [{ task_id: task }, { task_id: change }] });
    const done = { outcome: 'completed', summary: 'added' };
    expect(await use('finish_task', { lease: child.lease, ...done })).toMatchObject({ station: 'done' });
    expect((await lockOf(agent)).holders).toHaveLength(1);
    expect(await use('check_change', { approval_id: change })).toMatchObject({ outcome: 'over', state: 'COMPLETED' });
    expect(await use('finish_task', { lease: mine.lease, ...done })).toMatchObject({ task_id: task, station: 'done' });
    expect((await lockOf(agent)).holders).toEqual([]);
    expect(await use('claim_task')).toMatchObject({ none: true });
  });

  test('a change that is refused comes back with what the reviewer said, and nobody can submit without the task', async () => {
    const other = `${agent}-2`;
    const { token } = await anAgent(other);
    const use = await connect(transport(token));
    const mine = await use('claim_task', { wait_seconds: 5 });
    const wanted = { lease: mine.lease, preview: 'DROP TABLE form', reason: 'It is in the way' };
    const asked = await use('submit_change', wanted);
    const about = await call<{ items: { approval_id: string; task_id: string }[] }>(
      'GET',
      '/approvals',
      undefined,
      rob,
    );
    const { approval_id } = about.items.find(({ task_id }) => task_id === asked.task_id)!;
    await call('POST', `/approvals/${approval_id}/reject`, { reason: 'never' }, rob);
    expect(await use('check_change', { approval_id: asked.approval_id, wait_seconds: 5 })).toMatchObject({
      outcome: 'rejected',
      decisions: [{ by: 'rob', action: 'reject', says: 'never' }],
    });
    await use('finish_task', { lease: mine.lease, outcome: 'released' });
    expect(await use('submit_change', { ...wanted, reason: 'again' })).toMatchObject({
      isError: true,
      code: 'LEASE_LOST',
    });
    const foreign = String(mine.lease).replace(`:${other}:`, `:${agent}:`);
    expect(await use('report_progress', { lease: foreign, note: 'x' })).toMatchObject({
      isError: true,
      code: 'DENIED',
    });
  });
});

test('the thirteen tools are there and no other, each with its form, and none waits longer than 25 s', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(overHttp(admin));
  onTestFinished(() => client.close());
  const { tools } = await client.listTools();
  const inputs = Object.fromEntries(
    tools.map(({ name, inputSchema }) => [name, Object.keys(inputSchema.properties ?? {}).sort()]),
  );
  expect(inputs).toEqual({
    acquire_lock: ['agent', 'lease', 'lock_id', 'mode', 'purpose', 'resource', 'wait_seconds'],
    check_change: ['approval_id', 'wait_seconds'],
    claim_task: ['agent', 'labels', 'task_id', 'wait_seconds'],
    explain: ['ref'],
    find_assets: ['category', 'cursor', 'limit', 'query'],
    find_tasks: ['cursor', 'epic', 'limit', 'station', 'text'],
    finish_task: ['error', 'files_modified', 'lease', 'outcome', 'retryable', 'summary'],
    get_asset: ['detail', 'id', 'version'],
    get_briefing: [],
    get_task: ['detail', 'task_id'],
    release_lock: ['lock_id'],
    report_progress: ['files', 'lease', 'note', 'percent'],
    submit_change: ['lease', 'preview', 'reason', 'resources', 'rollback'],
  });
  const readOnly = tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name);
  expect(readOnly.sort()).toEqual([
    'check_change',
    'explain',
    'find_assets',
    'find_tasks',
    'get_asset',
    'get_briefing',
    'get_task',
  ]);
  expect(tools.filter(({ annotations }) => annotations?.destructiveHint !== false)).toEqual([]);
  expect(tools.filter(({ outputSchema }) => outputSchema === undefined)).toEqual([]);
  const waits = tools.flatMap(
    ({ inputSchema }) => (inputSchema.properties?.wait_seconds as { maximum?: number }) ?? [],
  );
  expect(waits.map(({ maximum }) => maximum)).toEqual([25, 25, 25]);
  expect(tools.flatMap(({ name, description }) => ((description ?? '').split(' ').length > 60 ? [name] : []))).toEqual(
    [],
  );
});
