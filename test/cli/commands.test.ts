import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeManifest } from '../../src/cli/manifest.ts';
import { operations } from '../../src/operations/index.ts';
import { type CliOptions, onlyObject, ROOT, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';
import { type GitRepo, makeGitRepo } from '../support/git-repo.ts';
import { tool } from '../support/registry.ts';

const { commands } = makeManifest(operations, '0');
/** Words that ask nothing more of a caller, by command; the daemon and the protocol server go on for ever. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'asset create': ['--manifest', '{"id":"fresh","version":"1.0.0","category":"prompt","name":"F","description":"It."}'],
  'asset delete': ['gone'],
  'asset diff': ['kept', '1.0.0', '1.0.0'],
  'asset get': ['kept'],
  'asset history': ['kept'],
  'asset release': ['HOLD', '--reason', 'it may'],
  'asset update': ['changed', '--set', '{"version":"1.1.0"}'],
  'asset validate': [join(ROOT, 'assets')],
  schema: ['status'],
  'agent beat': ['cli'],
  'agent drain': ['cli'],
  'agent register': ['cli'],
  'agent remove': ['cli'],
  'agent show': ['cli-show'],
  'agent update': ['cli-show', '--max-tasks', '2'],
  next: ['--agent', 'cli-next', '--task', 'TASK-001'],
  'batch claim': ['--agent', 'cli-several', '--count', '2'],
  'batch done': ['CLI-several', '--agent', 'cli-several'],
  'task add': ['CLI-2', '--title', 'Two'],
  ...Object.fromEntries(['approve', 'show'].map((word) => [`approval ${word}`, [`CLI-${word}.1`]])),
  ...Object.fromEntries(
    ['reject', 'changes', 'withdraw'].map((word) => [`approval ${word}`, [`CLI-${word}.1`, '--reason', 'no']]),
  ),
  'approval batch': ['CLI-batch.1'],
  'approval delegate': ['CLI-delegate.1', 'cli-other'],
  'task force-apply': ['CLI-edit', '--reason', 'down', '--ticket', 'INC-1'],
  'task override': ['CLI-override', 'default', '--reason', 'down', '--ticket', 'INC-1'],
  'approval simulate': ['CLI-edit'],
  'delegation remove': ['cli'],
  'delegation set': ['cli-set', 'bob'],
  'policy remove': ['cli-gone'],
  'policy set': ['cli', '--task-types', 'none'],
  'policy show': ['cli'],
  'policy simulate': ['cli', '--min-approvers', '2'],
  'task comment': ['CLI-1', 'well'],
  'task edit': ['CLI-edit', '--description', 'more'],
  'task preview': ['CLI-edit'],
  'task submit': ['CLI-submit', '--agent', 'bot'],
  'task admit': ['[]'],
  'task archive-now': ['--after-days', '0'],
  'task archived': ['CLI-archived'],
  'task restore': ['CLI-archived'],
  'task cancel': ['CLI-1'],
  'task import': ['no-tasks.json'],
  'task reset': ['errors', '--yes'],
  'task retry': ['CLI-1'],
  'task show': ['CLI-1'],
  ...Object.fromEntries(
    ['beat', 'done', 'drop', 'start'].map((verb) => [verb, [`CLI-${verb}`, '--agent', `cli-${verb}`]]),
  ),
  submit: ['CLI-changing', '--agent', 'cli-changing', '--preview', 'more', '--reason', 'it is wanted'],
  await: ['CLI-changing'],
  output: ['CLI-output', 'all went well', '--agent', 'cli-output'],
  'rolled-back': ['CLI-rolled-back', '--agent', 'cli-rolled-back', '--outcome', 'done'],
  stash: ['CLI-stash', 'before', '--agent', 'cli-stash'],
  ...Object.fromEntries(['execution', 'output', 'stash'].map((word) => [`task ${word}`, ['CLI-kept']])),
  'task rollback': ['CLI-kept', '--outcome', 'done'],
  fail: ['CLI-fail', '--agent', 'cli-fail', '--error', 'boom'],
  finish: ['CLI-finish', '--agent', 'cli-finish', '--outcome', 'completed'],
  note: ['CLI-note', 'working', '--agent', 'cli-note'],
  why: ['task:CLI-1'],
  'config set': ['lock:max_ttl', '900'],
  'session begin': ['SECRET'],
  'session end': ['cli-user'],
  'session list': ['cli-user'],
  'token create': ['--user', 'cli-user'],
  'token revoke': ['TOKEN'],
  'notification redeliver': ['NOTICE'],
  'notification test': ['cli'],
  'webhook create': ['https://webhook.invalid/'],
  'webhook redeliver': ['DELIVERY'],
  ...Object.fromEntries(['delete', 'deliveries', 'test', 'update'].map((word) => [`webhook ${word}`, ['WEBHOOK']])),
  'user add': ['cli-new'],
  'user remove': ['cli-gone'],
  'user set': ['cli-user', '--name', 'Cli'],
  'user show': ['cli-user'],
  'flag set': ['batch_approvals', 'enabled'],
  'lock acquire': ['task:CLI-1', '--agent', 'ann', '--lock-id', 'cli-1'],
  'lock beat': ['task:CLI-1', '--agent', 'ann', '--lock-id', 'cli-1'],
  'lock capacity': ['agent:ann', '--max-tasks', '1'],
  'lock release': ['task:CLI-1', '--agent', 'ann', '--lock-id', 'cli-1'],
  'lock show': ['task:CLI-1'],
};
/** Standard output of `hold` belongs to the command that it runs. */
const LONG = ['daemon', 'mcp', 'hold', 'run', 'worker', 'keep-task'];
/** They do their work without a daemon, too. */
const ALONE = ['config-show', 'doctor', 'sync'];
const shortOnes = commands.filter(({ local }) => !LONG.includes(local ?? ''));

let repo: GitRepo;
let home: TestFolder;
let daemon: TestDaemon;
let elsewhere: string;
beforeAll(async () => {
  repo = await makeGitRepo();
  repo.commit(Object.assign({}, ...['kept', 'gone', 'changed', 'wide'].map((id) => tool(id))));
  home = testFolder();
  const routes = 'notifications: {routes: [{name: cli, url: "http://127.0.0.1:1/"}]}';
  home.write('reeve.yaml', `sync: {schedule: off}\nassets: {sources: [{name: local, git: ${repo.dir}}]}\n${routes}\n`);
  daemon = await startDaemon({ cwd: home.path });
  expect(await run('sync')).toMatchObject({ code: 0 });
  elsewhere = await mkdtemp(join(tmpdir(), 'reeve-cli-'));
  await writeFile(join(elsewhere, 'no-tasks.json'), '[]');
  await prepareWork();
  await preparePeople();
});
afterAll(async () => {
  await daemon.stop();
  home[Symbol.dispose]();
  await repo[Symbol.asyncDispose]();
  await rm(elsewhere, { recursive: true, force: true });
});

/** One task for each word about one, with an agent that has it. */
async function prepareWork(): Promise<void> {
  const verbs = [
    'beat',
    'done',
    'drop',
    'start',
    'fail',
    'finish',
    'note',
    'several',
    'output',
    'rolled-back',
    'stash',
    'kept',
    'changing',
  ];
  const tasks = ['1', ...verbs].map((name) => ({ task_id: `CLI-${name}`, title: name, priority: 9 }));
  const post = (path: string, body: unknown, method = 'POST') =>
    fetch(`${daemon.url}/api/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await writeFile(join(daemon.cwd, 'no-tasks.json'), '[]');
  await post('/tasks/import', { tasks });
  const asked = ['approve', 'show', 'reject', 'changes', 'withdraw', 'batch', 'delegate', 'override'];
  await post('/users', { user: 'cli-other', roles: ['reviewer'] });
  for (const name of asked) await post('/tasks', { task: `CLI-${name}`, title: name, agent: 'bot', submit: true });
  for (const name of ['edit', 'submit']) await post('/tasks', { task: `CLI-${name}`, title: name, agent: 'bot' });
  await post('/tasks', { task: 'CLI-archived', title: 'archived' });
  await post('/tasks/CLI-archived/cancel', {});
  await post('/tasks/archive', { after_days: 0 });
  await post('/approvals/CLI-withdraw.1/approve', {});
  const put = (path: string, body: unknown) => post(path, body, 'PUT');
  for (const name of ['cli', 'cli-gone']) await put(`/policies/${name}`, { task_types: ['none'] });
  await put('/delegations/cli', { delegate_to: 'bob' });
  for (const agent of ['cli', 'cli-show']) await post('/agents', { agent });
  for (const verb of verbs) await post(`/agents/cli-${verb}/claim`, { task: `CLI-${verb}` });
  for (const kept of ['output', 'stash']) await post(`/tasks/CLI-kept/${kept}`, { agent: 'cli-kept', data: kept });
  await post('/tasks/CLI-kept/drop', { agent: 'cli-kept' });
}

/** From here on every command brings the token that the data directory keeps. */
async function preparePeople(): Promise<void> {
  expect(await run('token', 'create', '--save')).toMatchObject({ code: 0 });
  for (const user of ['cli-user', 'cli-gone']) expect(await run('user', 'add', user)).toMatchObject({ code: 0 });
}

/** What can only be known once it was made. */
const MADE: Readonly<Record<string, () => Promise<string>>> = {
  HOLD: aHold,
  SECRET: async () => String(onlyObject(await run('token', 'create', '--json')).token),
  WEBHOOK: aWebhook,
  DELIVERY: async () => String(onlyObject(await run('webhook', 'test', await aWebhook(), '--json')).delivery_id),
  NOTICE: async () => String(onlyObject(await run('notification', 'test', 'cli', '--json')).delivery_id),
  TOKEN: async () => String(onlyObject(await run('token', 'create', '--json')).token_id),
};

const run = (...words: string[]) => reeve(words, { cwd: daemon.cwd });
/** In a folder without a daemon, with an address at which none listens. */
const runAlone = (words: readonly string[], env: CliOptions['env'] = {}) =>
  reeve(words, { cwd: elsewhere, env: { REEVE_HTTP_PORT: '1', ...env } });

/** A name that is never there. */
async function aWebhook(): Promise<string> {
  const made = await run('webhook', 'create', 'https://webhook.invalid/', '--events', 'task:forced', '--json');
  return String(onlyObject(made).webhook_id);
}

/** A change that waits for a person: an asset that asks for more than before. */
async function aHold(): Promise<string> {
  repo.commit(tool('wide', { version: '1.1.0', permissions: ['network', 'filesystem'] }));
  expect(await run('sync')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('reeve asset release permission-widening-'),
  });
  const [hold] = onlyObject(await run('asset', 'holds', '--json')).items as [{ id: string }];
  return hold.id;
}

test('a version that is asked for is one of the asset, not of reeve', async () => {
  expect(await run('asset', 'get', 'kept', '--version', '9.9.9')).toMatchObject({ code: 3 });
  expect(onlyObject(await run('asset', 'get', 'kept', '--version', '1.0.0', '--json'))).toMatchObject({ id: 'kept' });
  expect(await run('asset', 'list', '--version')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+/),
  });
});

test('parts of an asset are set as NAME=VALUE, several at once', async () => {
  const ran = await run(
    'asset',
    'update',
    'changed',
    '--set',
    'version=1.0.5',
    '--set',
    'description=a: "b"',
    '--json',
  );
  expect(ran).toMatchObject({ code: 0 });
  expect(onlyObject(await run('asset', 'get', 'changed', '--json'))).toMatchObject({
    version: '1.0.5',
    description: 'a: "b"',
  });
});

describe.each(shortOnes.map((command) => ({ name: command.words.join(' '), ...command })))('reeve $name', (command) => {
  const words = [...command.words, ...(ARGUMENTS[command.name] ?? [])];

  test('answers --json with one object, and nothing besides', async () => {
    const made = await Promise.all(words.map(async (word) => MADE[word]?.() ?? word));
    const ran = await run(...made, '--json');
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(onlyObject(ran)).not.toHaveProperty('error');
  });

  test('fails with --json as one object too', async () => {
    const ran = await run(...words, '--json', '--no-such-option');
    expect(ran.code).toBe(2);
    expect(onlyObject(ran)).toMatchObject({ error: { code: 'USAGE', next: `reeve ${command.name} --help` } });
    expect(ran.stderr).toContain('--no-such-option');
  });

  test('has help with examples that exist and with its exit codes', async () => {
    const { code, stdout } = await run(...command.words, '--help');
    expect(code).toBe(0);
    for (const example of command.examples) expect(stdout).toContain(example);
    expect(stdout).toMatch(/Exit codes: 0 ok · .*2 usage/);
    expect(stdout).toContain('--json [fields]');
  });
});

test.each(
  shortOnes.filter(({ asks, local = '' }) => asks && !ALONE.includes(local)).map(({ words }) => words.join(' ')),
)('reeve %s says so when there is no daemon', async (name) => {
  const ran = await runAlone([...name.split(' '), ...(ARGUMENTS[name] ?? []), '--json']);
  expect(ran.code).toBe(8);
  expect(onlyObject(ran)).toMatchObject({ error: { code: 'DAEMON_UNREACHABLE' } });
  expect(ran.stderr).toContain('reeve daemon');
});

describe('without --json', () => {
  test('a pipe gets one line for each thing, without colours', async () => {
    const { stdout } = await run('status');
    const [first, ...rest] = stdout.trimEnd().split('\n');
    expect(first).toMatch(/^ready version=\S+ address=http:\S+ project=odyssey uptime_seconds=\d+ identity=tokens$/);
    const words = rest.map((line) => line.split(' ').slice(0, 2).join(' '));
    const parts = ['redis', 'store', 'events', 'journal', 'tasks', 'assets'].map((name) => `up name=${name}`);
    expect(words.slice(0, 6)).toEqual(parts);
    expect(words.slice(6)).toContainEqual(expect.stringMatching(/^work total=/));
    expect(stdout).not.toContain('\x1b');
  });

  test('a failure goes to standard error alone, with the next step', async () => {
    expect(await runAlone(['status'])).toMatchObject({
      code: 8,
      stdout: '',
      stderr: expect.stringMatching(/^error No reeve daemon answers at .*\n {2}next {2}Start one: reeve daemon/),
    });
  });

  test('REEVE_OUTPUT=json is --json for all', async () => {
    const ran = await reeve(['health'], { cwd: daemon.cwd, env: { REEVE_OUTPUT: 'json' } });
    expect(onlyObject(ran)).toMatchObject({ alive: true, pid: daemon.pid });
  });
});

describe('--json FIELDS', () => {
  test('keeps only these', async () => {
    expect(onlyObject(await run('health', '--json', 'pid,alive'))).toEqual({ pid: daemon.pid, alive: true });
  });

  test('keeps them of each item of a list', async () => {
    const { items } = onlyObject(await run('events', '--limit', '1', '--json', 'event')) as { items: object[] };
    expect(items).toEqual([{ event: expect.any(String) }]);
  });

  test('refuses one that no answer has', async () => {
    const ran = await run('health', '--json', 'pid,alvie');
    expect(ran.code).toBe(2);
    expect(onlyObject(ran)).toMatchObject({
      error: { detail: 'reeve health has no field alvie', next: expect.stringContaining('alive') },
    });
  });
});

describe('a slip of the finger', () => {
  test.each([
    [['stauts'], "unknown command 'stauts' (Did you mean one of stats, status?)", 'reeve --help'],
    [['config', 'shwo'], "unknown command 'shwo' (Did you mean show?)", 'reeve config --help'],
    [['status', '--jsn'], "unknown option '--jsn' (Did you mean --json?)", 'reeve status --help'],
    [['status', 'now'], "too many arguments for 'status'", 'reeve status --help'],
    [['schema'], "missing required argument 'command'", 'reeve schema --help'],
    [['events', '--limit'], "option '--limit <limit>' argument missing", 'reeve events --help'],
  ])('%j is usage, with what was meant', async (words, problem, next) => {
    const ran = await run(...words);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain(`error ${problem}`);
    expect(ran.stderr).toContain(`next  ${next}\n`);
    const again = await reeve(words, { cwd: daemon.cwd, env: { REEVE_OUTPUT: 'json' } });
    expect(onlyObject(again)).toMatchObject({ error: { code: 'USAGE', next } });
  });

  test('nothing at all shows the help, as usage', async () => {
    const ran = await run();
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    for (const { summary } of commands.filter(({ words }) => words.length === 1))
      expect(ran.stderr.replace(/\s+/g, ' ')).toContain(summary);
  });

  test('a value of the wrong kind is refused by the daemon, with the schema to look at', async () => {
    const ran = await run('events', '--limit', 'many', '--json');
    expect(ran.code).toBe(2);
    expect(onlyObject(ran)).toMatchObject({
      error: { code: 'INVALID_INPUT', next: expect.stringMatching(/reeve schema events$/) },
    });
  });
});

describe('which daemon is asked', () => {
  test('the one that --url names, before REEVE_URL', async () => {
    const ran = await runAlone(['health', '--url', daemon.url], { REEVE_URL: 'http://127.0.0.1:1' });
    expect(ran.code).toBe(0);
  });

  test('the one that REEVE_URL names', async () => {
    expect((await runAlone(['health'], { REEVE_URL: `${daemon.url}/` })).code).toBe(0);
  });

  test('the one of a data directory', async () => {
    expect((await runAlone(['health', '--data-dir', daemon.dataDir])).code).toBe(0);
    expect((await runAlone(['health'], { REEVE_DATA_DIR: daemon.dataDir })).code).toBe(0);
  });

  test.each(['nope', 'ftp://127.0.0.1', 'http://'])('%s is no URL of a daemon', async (url) => {
    const ran = await runAlone(['health', '--url', url, '--json']);
    expect(ran.code).toBe(2);
    expect(onlyObject(ran)).toMatchObject({ error: { code: 'USAGE' } });
  });

  test('one that is no reeve is called so', async () => {
    const stranger = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
    await once(stranger, 'listening');
    const { port } = stranger.address() as AddressInfo;
    const ran = await runAlone(['health', '--url', `http://127.0.0.1:${port}`]);
    stranger.close();
    expect(ran).toMatchObject({ code: 8, stderr: expect.stringContaining('is it a reeve?') });
  });
});

test('plurals are aliases', async () => {
  expect((await run('configs', 'show')).code).toBe(0);
});

test('reeve schema gives the form of what a command takes and answers', async () => {
  const { input, output } = onlyObject(await run('schema', 'events')) as Record<string, { properties: object }>;
  expect(Object.keys(input?.properties ?? {})).toEqual(expect.arrayContaining(['stream', 'since', 'limit']));
  expect(Object.keys(output?.properties ?? {})).toEqual(expect.arrayContaining(['items', 'next_cursor']));
});
