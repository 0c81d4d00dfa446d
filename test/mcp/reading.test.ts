import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { plainEnv, REEVE } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';
import { until } from '../support/until.ts';

let daemon: TestDaemon;
let folder: TestFolder;
beforeAll(async () => {
  folder = testFolder();
  await cp(new URL('../../assets', import.meta.url), join(folder.path, 'assets'), { recursive: true });
  await writeFile(join(folder.path, 'reeve.yaml'), 'assets:\n  sources:\n    - { name: local, dir: ./assets }\n');
  daemon = await startDaemon({ cwd: folder.path });
  await until('the first sync', async () => (await fetch(`${daemon.url}/api/v1/assets/meeting_notes`)).ok);
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(new URL(`/api/v1${path}`, daemon.url), {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return (response.status === 204 ? {} : await response.json()) as T;
}

const overHttp = () => new StreamableHTTPClientTransport(new URL('/mcp', daemon.url));
const overStdio = () =>
  new StdioClientTransport({
    command: REEVE,
    args: ['mcp', '--url', daemon.url],
    cwd: folder.path,
    env: Object.fromEntries(
      Object.entries(plainEnv()).filter((pair): pair is [string, string] => pair[1] !== undefined),
    ),
    stderr: 'pipe',
  });

async function connect(
  transport: Parameters<Client['connect']>[0],
  options: ConstructorParameters<typeof Client>[1] = {},
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, options);
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

async function admit(...ids: readonly string[]): Promise<void> {
  await call('POST', '/tasks/import', { tasks: ids.map((task_id) => ({ task_id, title: task_id, priority: 5 })) });
}

describe.each([
  ['http', overHttp, 'auto'],
  ['http', overHttp, 'legacy'],
  ['stdio', overStdio, 'auto'],
] as const)('over %s', (_, transport, mode) => {
  const open = () => connect(transport(), mode === 'auto' ? { versionNegotiation: { mode } } : {});
  const read = async (client: Client, uri: string): Promise<Record<string, unknown>> => {
    const { contents } = await client.readResource({ uri });
    return JSON.parse((contents[0] as { text: string }).text) as Record<string, unknown>;
  };

  test(`what there is can be listed and read (${mode})`, async () => {
    await admit('R-1');
    const client = await open();
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();

    const uris = resources.map(({ uri }) => uri);
    expect(uris).toEqual(
      expect.arrayContaining(['reeve://overview', 'reeve://locks', 'reeve://agents', 'reeve://approvals/pending']),
    );
    expect(uris).toContain('asset://prompt/meeting_notes');
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'reeve://task/{id}',
      'reeve://task/{id}/events',
      'reeve://task/{id}/result',
      'asset://{category}/{id}',
    ]);
    for (const uri of uris.filter((one) => one.startsWith('reeve:')))
      expect(await read(client, uri)).toBeTypeOf('object');
    expect(await read(client, 'reeve://task/R-1')).toMatchObject({ task_id: 'R-1' });
    expect(await read(client, 'reeve://task/R-1/result')).toMatchObject({ task_id: 'R-1' });
    expect(await read(client, 'reeve://task/R-1/events')).toHaveProperty('items');
    expect(await read(client, 'asset://prompt/meeting_notes@1.0.0')).toMatchObject({ id: 'meeting_notes' });
    await expect(read(client, 'reeve://task/R-none')).rejects.toThrow(/R-none/);
    await expect(read(client, 'asset://tool/meeting_notes')).rejects.toThrow(/meeting_notes/);
  });

  test(`ids are completed (${mode})`, async () => {
    await admit('R-2');
    const client = await open();
    const complete = async (uri: string, name: string, value: string) =>
      (await client.complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } })).completion.values;
    expect(await complete('reeve://task/{id}', 'id', 'R-2')).toEqual(['R-2']);
    expect(await complete('asset://{category}/{id}', 'category', 'p')).toEqual(['prompt']);
    expect(await complete('asset://{category}/{id}', 'id', 'meet')).toEqual(['meeting_notes']);
  });

  test(`its own prompts and those of the registry are filled in (${mode})`, async () => {
    const client = await open();
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'start_work',
        'review_change',
        'triage_failures',
        'hand_over',
        'explain_hold',
        'meeting_notes',
      ]),
    );
    expect(prompts.find(({ name }) => name === 'meeting_notes')?.arguments).toEqual([
      { name: 'language', description: 'Language of the notes', required: false },
      { name: 'transcript', description: 'transcript', required: true },
    ]);
    const say = async (name: string, args?: Record<string, string>) => {
      const { messages } = await client.getPrompt({ name, ...(args && { arguments: args }) });
      return (messages[0]!.content as { text: string }).text;
    };
    const said = await say('meeting_notes', { transcript: 'We {{language}} agreed.' });
    expect(said).toContain('Write notes in English');
    expect(said).toContain('We {{language}} agreed.');
    expect(await say('explain_hold', { ref: 'R-1' })).toContain('R-1');
    await expect(say('meeting_notes')).rejects.toThrow(/transcript/);
    await expect(say('nothing')).rejects.toThrow(/nothing/);
  });
});

test('who subscribed to a task is told when something happens to it', async () => {
  await admit('R-3');
  const client = await connect(overHttp(), { versionNegotiation: { mode: 'auto' } });
  const updated: string[] = [];
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    updated.push(params.uri);
  });
  const listening = await client.listen({ resourceSubscriptions: ['reeve://task/R-3'] });
  await call('POST', '/tasks/R-3/cancel', {});
  await until('the notification', async () => updated.length > 0);
  expect(new Set(updated)).toEqual(new Set(['reeve://task/R-3']));
  await listening.close();
});

describe('a client over standard input and output', () => {
  const use = async () => {
    const client = await connect(overStdio());
    const ask = async (name: string, args: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: args })).structuredContent as Record<string, unknown>;
    return { client, ask };
  };
  const task = (id: string) => call<Record<string, unknown>>('GET', `/tasks/${id}`);

  test('gives its task and its locks back when it goes away', async () => {
    await admit('K-1');
    const { client, ask } = await use();
    expect(await ask('claim_task', { task_id: 'K-1' })).toMatchObject({ task: { task_id: 'K-1' } });
    expect(await ask('acquire_lock', { resource: 'thing:k' })).toMatchObject({ outcome: 'held' });
    expect(await task('K-1')).toMatchObject({ station: 'working' });
    await client.close();
    await until('the task to be ready', async () => (await task('K-1')).station === 'ready');
    expect(await call('GET', '/locks/resource:thing:k')).toMatchObject({ holders: [] });
  });

  test('keeps nothing of what it has finished', async () => {
    await admit('K-2');
    const { client, ask } = await use();
    const { lease } = await ask('claim_task', { task_id: 'K-2' });
    expect(await ask('finish_task', { lease, outcome: 'completed' })).toMatchObject({ station: 'done' });
    await client.close();
    expect(await task('K-2')).toMatchObject({ station: 'done' });
  });
});
