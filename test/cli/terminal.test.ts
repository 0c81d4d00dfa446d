import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliOptions, REEVE, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon[Symbol.asyncDispose]());

const hasScript = spawnSync('script', ['--version']).status === 0;
if (!hasScript) process.stderr.write('The terminal tests are skipped: there is no program "script".\n');

/** As a person at a terminal sees it. */
const atTerminal = (command: string, env: CliOptions['env'] = {}) =>
  reeve(['-qec', `stty cols 200; ${REEVE} ${command}`, '/dev/null'], {
    program: 'script',
    cwd: daemon.cwd,
    env: { TERM: 'xterm-256color', ...env },
  });

describe.skipIf(!hasScript)('at a terminal', () => {
  test('a person sees marks and colours', async () => {
    const { code, stdout } = await atTerminal('status');
    expect(code).toBe(0);
    expect(stdout).toContain('\u001b[32mready\u001b[39m reeve');
    expect(stdout).toMatch(/✓.* redis +embedded, unix:/);
  });

  test.each([
    ['NO_COLOR', 'status', { NO_COLOR: '1' }],
    ['--no-color', 'status --no-color', {}],
    ['a terminal that knows none', 'status', { TERM: 'dumb' }],
  ])('%s means no colours', async (_why, command, env) => {
    const { stdout } = await atTerminal(command, env);
    expect(stdout).toMatch(/^ready reeve/);
    expect(stdout).not.toContain('\u001b');
  });

  test('a list is a table', async () => {
    const { stdout } = await atTerminal('config show --sources --no-color');
    expect(stdout.split('\r\n')[0]).toMatch(/^SETTING +VALUE +SOURCE$/);
    expect(stdout).toMatch(/http\.port +7420 +default/);
  });

  test('--watch draws on a screen of its own, fits the window, and leaves the last board behind when interrupted', async () => {
    const interrupted = `timeout --foreground --preserve-status -s INT 3 ${REEVE} status --watch --no-color`;
    const { code, stdout } = await reeve(['-qec', `stty cols 80 rows 10; ${interrupted}`, '/dev/null'], {
      program: 'script',
      cwd: daemon.cwd,
      env: { TERM: 'xterm-256color' },
    });
    expect(code).toBe(130);
    const [before = '', drawn = ''] = stdout.split('\u001b[?1049h');
    const [frames = '', after = ''] = drawn.split('\u001b[?1049l');
    expect(before).toBe('');
    const [frame = ''] = frames.split('\u001b[H').slice(1);
    expect(frame.split('\r\n').length).toBeLessThanOrEqual(10);
    expect(frame).toContain('ready reeve');
    expect(after).toMatch(/^ready reeve [\s\S]*work +░+ +0 of 10 done/);
    expect(after).toMatch(/pace +not enough history/);
    expect(frames).toContain('\u001b[?25l');
    expect(frames.endsWith('\u001b[?7h\u001b[?25h')).toBe(true);
  });

  test('--json is the same as in a pipe', async () => {
    expect(JSON.parse((await atTerminal('health --json')).stdout)).toMatchObject({ alive: true });
  });
});

test('a reader that has had enough is no failure', async () => {
  const { code, stdout, stderr } = await reeve(['-c', `set -o pipefail; ${REEVE} config schema | head -1`], {
    program: 'bash',
    cwd: daemon.cwd,
  });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '{\n', stderr: '' });
});

describe.each([
  ['events --follow', 'daemon:started'],
  ['events --follow --json', '"daemon:started"'],
  ['status --watch', 'ready'],
  ['status --watch --json', '"ready"'],
  ['status --watch --jsonl', '"ready"'],
])('%s', (command, first) => {
  test('goes on until Ctrl-C, and says that it was interrupted', async () => {
    let said = '';
    let isInterrupted = false;
    const ran = await reeve(command.split(' '), {
      cwd: daemon.cwd,
      started: (child) => {
        child.stdout?.on('data', (chunk) => {
          said += chunk;
          if (!isInterrupted && said.includes(first)) isInterrupted = child.kill('SIGINT');
        });
      },
    });
    expect(ran).toMatchObject({ code: 130, stderr: '' });
    for (const line of command.includes('--json') ? ran.stdout.trimEnd().split('\n') : [])
      expect(JSON.parse(line)).toBeTypeOf('object');
  });
});

describe('reeve mcp', () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };

  test('ends when its client hangs up', async () => {
    const ran = await reeve(['mcp'], { cwd: daemon.cwd, input: '' });
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('ends at Ctrl-C though its client is still there', async () => {
    const ran = await reeve(['mcp'], {
      cwd: daemon.cwd,
      keepsInput: true,
      started: (child) => {
        child.stdin?.write(`${JSON.stringify(initialize)}\n`);
        child.stdout?.once('data', () => child.kill('SIGINT'));
      },
    });
    expect(ran.code).toBe(130);
    expect(JSON.parse(ran.stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'reeve' } } });
  });
});

test('events --follow outlives the daemon and goes on with the next one', async () => {
  await using first = await startDaemon();
  let said = '';
  let complaints = '';
  let interrupt = () => {};
  const followed = reeve(['events', '--follow'], {
    cwd: first.cwd,
    started: (child) => {
      interrupt = () => void child.kill('SIGINT');
      child.stdout?.on('data', (chunk) => {
        said += chunk;
      });
      child.stderr?.on('data', (chunk) => {
        complaints += chunk;
      });
    },
  });
  await until('it follows', () => said.includes('daemon:started'));
  await first.stop();
  await until('it says that it waits', () => complaints.includes('the daemon is gone; waiting for it'));
  await using second = await startDaemon({ cwd: first.cwd });
  await until('the next one is followed', () => said.includes(`pid=${second.pid}`));
  interrupt();

  expect((await followed).code).toBe(130);
  // Between the two nothing is lost or told twice.
  const told = said
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');
  expect(told.filter((event) => event.startsWith('daemon:'))).toEqual([
    'daemon:started',
    'daemon:stopping',
    'daemon:started',
  ]);
  await second.stop();
});
