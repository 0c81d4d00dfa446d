import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { onlyObject, type Ran, REEVE, reeve } from '../support/cli.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';
import { type OpenDaemon, startOpenDaemon } from '../support/open-daemon.ts';
import { isRunning, until } from '../support/until.ts';

let daemon: OpenDaemon;
let folder: TestFolder;
beforeAll(async () => {
  folder = testFolder();
  daemon = await startOpenDaemon();
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

interface Shown {
  readonly status: string;
  readonly attempts: number;
  readonly because?: string;
  readonly agent_id?: string;
  readonly lock_id?: string;
  readonly result?: Record<string, unknown> & { readonly errors: readonly string[] };
}
const show = (task: string) => daemon.call<Shown>('GET', `/tasks/${task}`);

let made = 0;
/** A type of agent that no other test knows, and tasks for it alone. */
async function work(...contents: readonly object[]): Promise<{ type: string; tasks: string[] }> {
  const type = `type-${++made}`;
  const tasks = contents.map((_, at) => `W-${made}-${at + 1}`);
  for (const [at, content] of contents.entries()) {
    const about = { task: tasks[at], title: `Title of ${tasks[at]}`, agent_type: type, submit: true };
    await daemon.call('POST', '/tasks', { ...about, ...content });
  }
  return { type, tasks };
}

interface WorkerOptions {
  readonly type: string;
  readonly exec: string;
  readonly args?: readonly string[];
  readonly agent?: string;
  readonly started?: (child: ChildProcess) => void;
}
const worker = ({ type, exec, args = ['--once'], agent = `agent-of-${type}`, started }: WorkerOptions): Promise<Ran> =>
  reeve(['worker', '--agent', agent, '--type', type, '--exec', exec, ...args, '--data-dir', daemon.dataDir], {
    cwd: folder.path,
    env: { GREETING: 'hello' },
    ...(started && { started }),
  });
const written = async (name: string) => (await readFile(join(folder.path, name), 'utf8').catch(() => '')).trim();
const pidIn = (name: string) => until(`a process id in ${name}`, async () => Number(await written(name)) || undefined);

describe('a command', () => {
  test('finds its task on standard input, in a file and in its environment, and leaves its result on descriptor 3', async () => {
    const { type, tasks } = await work({ description: 'Say "hello" — ünïcode', timeout_seconds: 60 });
    const exec = `cat > stdin.json; cmp stdin.json "$REEVE_TASK_FILE" && cp /dev/stdin again.json
      env | grep ^REEVE_ | sort > env.txt; echo "$GREETING"
      echo '{"notes": "as asked", "files_modified": ["a.ts"], "cost": 3}' >&3`;
    const { code, stdout } = await worker({ type, exec });
    expect(code).toBe(0);
    expect(stdout).toBe(`${tasks[0]} | hello\nok agent=agent-of-${type} done=1 failed=0 dropped=0 lost=0\n`);
    const given = JSON.parse(await written('stdin.json')) as { task: object; lease: Record<string, string> };
    expect(given.task).toMatchObject({ task_id: tasks[0], description: 'Say "hello" — ünïcode' });
    const env = Object.fromEntries((await written('env.txt')).split('\n').map((line) => line.split(/=(.*)/s)));
    expect(env).toEqual({
      REEVE_URL: daemon.url,
      REEVE_AGENT: `agent-of-${type}`,
      REEVE_AGENT_ID: `agent-of-${type}`,
      REEVE_TASK_ID: tasks[0],
      REEVE_TASK_TITLE: `Title of ${tasks[0]}`,
      REEVE_TASK_FILE: expect.stringMatching(/task\.json$/),
      REEVE_RESULT_FILE: expect.stringMatching(/result\.json$/),
      REEVE_STASH_FILE: expect.stringMatching(/stash$/),
      REEVE_ATTEMPT: '1',
      REEVE_LOCK_ID: given.lease.lock_id,
      REEVE_FENCING_TOKEN: given.lease.fencing_token,
    });
    const { status, result } = await show(tasks[0]!);
    expect(status).toBe('completed');
    expect(result).toMatchObject({
      agent_id: `agent-of-${type}`,
      notes: 'as asked',
      files_modified: ['a.ts'],
      cost: 3,
      exit_code: 0,
      output: 'hello\n',
    });
  });

  test('may speak for itself, as the agent it is, also where a reeve.yaml lies', async () => {
    const { type, tasks } = await work({});
    folder.write('reeve.yaml', 'http:\n  port: 7421\n');
    const exec = `${REEVE} note "$REEVE_TASK_ID" "half of it" --percent 50; ${REEVE} config show > config.txt && ${REEVE} done "$REEVE_TASK_ID"`;
    const { stderr, stdout } = await worker({ type, exec });
    rmSync(join(folder.path, 'reeve.yaml'));
    expect(stdout).toContain(`ok task=${tasks[0]} until=`);
    expect(stderr).not.toContain('error');
    expect(await show(tasks[0]!)).toMatchObject({ status: 'completed', percent: 50 });
  });

  test('may leave its result in a file of the worker’s choosing', async () => {
    const { type, tasks } = await work({});
    folder.write(`result-${tasks[0]}.json`, '{"notes": "of another time"}');
    const exec = `[ ! -s "$REEVE_RESULT_FILE" ] && echo '{"notes": "fresh"}' > new.json && mv new.json "$REEVE_RESULT_FILE"`;
    await worker({ type, exec, args: ['--once', '--result', 'result-{task}.json'] });
    expect((await show(tasks[0]!)).result).toMatchObject({ notes: 'fresh' });
  });

  test('that leaves a result nobody can read has still done its work', async () => {
    const { type, tasks } = await work({}, {});
    const exec = `if [ "$REEVE_TASK_ID" = ${tasks[0]} ]; then echo nonsense >&3; else
      printf '{"notes": "%0200000d"}' 7 >&3; fi`;
    expect((await worker({ type, exec, args: ['--drain-after', '2'] })).code).toBe(0);
    expect((await show(tasks[0]!)).result?.errors).toEqual(['its result was not read: it is no JSON']);
    expect((await show(tasks[1]!)).result?.errors[0]).toContain('its result was refused');
  });

  test('that writes fifty megabytes is passed on whole and kept in part', async () => {
    const { type, tasks } = await work({});
    const exec = 'echo first; head -c 52428800 /dev/zero | tr "\\0" "x"; echo; echo last';
    const { code, stdout } = await worker({ type, exec });
    expect(code).toBe(0);
    expect(stdout.length).toBeGreaterThan(52_428_800);
    const { result } = await show(tasks[0]!);
    expect(result).toMatchObject({ output_truncated: true, output_bytes: 52_428_800 + 12 });
    expect(result?.output).toMatch(/^first\nxxx.*bytes left out.*xxx\nlast\n$/s);
    expect(String(result?.output).length).toBeLessThan(33_000);
  });

  test('with --json writes to standard error, and standard output has the tally alone', async () => {
    const { type } = await work({});
    const ran = await worker({ type, exec: 'echo loud', args: ['--once', '--json'] });
    expect(onlyObject(ran)).toEqual({ agent: `agent-of-${type}`, done: 1, failed: 0, dropped: 0, lost: 0 });
    expect(ran.stderr).toContain('| loud\n');
  });
});

describe('a failure', () => {
  test('of the task uses up an attempt and is tried again later', async () => {
    const { type, tasks } = await work({});
    const { code, stderr } = await worker({ type, exec: 'echo "no such table" >&2; exit 3' });
    expect(code).toBe(1);
    expect(stderr).toContain('failed (task): the command ended with exit code 3; its last line: no such table');
    // There is no result that it could go with, however short it is.
    const output = await daemon.call<{ data: string }>('GET', `/tasks/${tasks[0]}/output`);
    expect(output.data).toContain('no such table');
    expect(await show(tasks[0]!)).toMatchObject({ attempts: 1, status: 'blocked' });
  });

  test.each([
    ['exit code 75', 'exit 75', 'infra'],
    ['a command that is not there', './nothing-of-that-name', 'infra'],
    ['what the command says', `echo '{"class": "auth", "error": "who am I?"}' >&3; exit 1`, 'auth'],
    ['the end of the output', 'echo "rate_limit_error" >&2; exit 1', 'quota'],
  ])('that is not the task’s uses up none: %s', async (_, exec, kind) => {
    const { type, tasks } = await work({});
    const { stderr } = await worker({ type, exec });
    expect(stderr).toContain(`failed (${kind})`);
    expect(await show(tasks[0]!)).toMatchObject({ attempts: 0 });
  });

  test('may be a crash', async () => {
    const { type, tasks } = await work({});
    const { stderr } = await worker({ type, exec: 'kill -SEGV $$' });
    expect(stderr).toContain('failed (task): the command was killed by SIGSEGV');
    expect(await show(tasks[0]!)).toMatchObject({ attempts: 1 });
  });

  test('is rolled back where the task says so, with the task at hand', async () => {
    const { type, tasks } = await work({ rollback_strategy: 'automatic' });
    const rollback = 'echo "undo $REEVE_TASK_ID after $REEVE_EXIT_CODE: $(head -c 7)" > undone';
    const { stderr } = await worker({ type, exec: 'exit 4', args: ['--once', '--rollback', rollback] });
    expect(await written('undone')).toBe(`undo ${tasks[0]} after 4: {"task"`);
    expect(stderr).toContain('rolled back');
  });

  test('that cannot be rolled back is final, for a second try would build on the ruins of the first', async () => {
    const { type, tasks } = await work({ rollback_strategy: 'automatic' });
    await worker({ type, exec: 'exit 4', args: ['--once', '--rollback', 'exit 1'] });
    expect(await show(tasks[0]!)).toMatchObject({ status: 'failed' });
  });

  test('is left to a person where the task says so', async () => {
    const { type } = await work({ rollback_strategy: 'manual' });
    const { stderr } = await worker({ type, exec: 'exit 4', args: ['--once', '--rollback', 'touch undone-by-hand'] });
    expect(stderr).toContain('a person has to roll it back');
    expect(await written('undone-by-hand')).toBe('');
  });

  test('may be a command that takes too long, or says nothing for too long', async () => {
    const { type, tasks } = await work({}, {});
    const args = ['--once', '--timeout', '0.2'];
    expect((await worker({ type, exec: 'sleep 600', args })).stderr).toContain('it took too long');
    const silent = ['--once', '--no-progress', '0.2', '--kill-silent'];
    const { stderr } = await worker({ type, exec: 'sleep 600', args: silent });
    expect(stderr).toContain('no output for 0 s');
    expect(stderr).toContain('it had written nothing for too long');
    for (const task of tasks) expect(await show(task)).toMatchObject({ attempts: 1 });
  });
});

test('silence is noted on the task, and the command goes on', async () => {
  const { type, tasks } = await work({});
  const running = worker({
    type,
    exec: 'until [ -e go-on ]; do sleep 0.05; done',
    args: ['--once', '--no-progress', '1'],
  });
  const seen = await until('the note', async () => (await show(tasks[0]!)).because);
  expect(seen).toBe('no output for 1 s');
  folder.write('go-on', '');
  expect((await running).code).toBe(0);
});

test('several tasks run at a time, but no more than that', async () => {
  const { type, tasks } = await work({}, {}, {}, {}, {}, {});
  const exec = `mkdir -p now-${type}; touch now-${type}/$REEVE_TASK_ID; ls now-${type} | wc -l >> count-${type}
    until [ "$(wc -l < count-${type})" -ge 3 ]; do sleep 0.02; done; rm now-${type}/$REEVE_TASK_ID`;
  const { code } = await worker({ type, exec, args: ['--concurrency', '3', '--drain-after', '6'] });
  expect(code).toBe(0);
  const counts = (await written(`count-${type}`)).split('\n').map(Number);
  expect(Math.max(...counts)).toBe(3);
  for (const task of tasks) expect(await show(task)).toMatchObject({ status: 'completed' });
});

describe('a worker that is told to stop', () => {
  const SLEEPER = 'trap "" TERM; echo $$ > pid-$REEVE_TASK_ID; until [ -e end-$REEVE_TASK_ID ]; do sleep 0.05; done';

  test('claims nothing more and waits for what runs', async () => {
    const { type, tasks } = await work({}, {});
    let child: ChildProcess | undefined;
    const running = worker({
      type,
      exec: SLEEPER,
      args: [],
      started: (one) => {
        child = one;
      },
    });
    await pidIn(`pid-${tasks[0]}`);
    child?.kill('SIGTERM');
    folder.write(`end-${tasks[0]}`, '');
    const { code, stdout } = await running;
    expect(code).toBe(0);
    expect(stdout).toContain('done=1');
    expect(await show(tasks[0]!)).toMatchObject({ status: 'completed' });
    expect(await show(tasks[1]!)).toMatchObject({ status: 'pending' });
    expect(await daemon.call('GET', `/agents/agent-of-${type}`)).toMatchObject({ status: 'finished' });
  });

  test('twice, kills what runs and gives the tasks back', async () => {
    const { type, tasks } = await work({});
    let child: ChildProcess | undefined;
    const running = worker({
      type,
      exec: SLEEPER,
      args: [],
      started: (one) => {
        child = one;
      },
    });
    const pid = await pidIn(`pid-${tasks[0]}`);
    child?.stderr?.on('data', (chunk) => {
      if (String(chunk).includes('a second signal kills')) child?.kill('SIGINT');
    });
    child?.kill('SIGTERM');
    expect((await running).code).toBe(143);
    expect(await isRunning(pid)).toBe(false);
    expect(await show(tasks[0]!)).toMatchObject({ status: 'pending', attempts: 0 });
  });

  test('with a grace passes the signal on when that is over, rolls back and gives the task back', async () => {
    const { type, tasks } = await work({ rollback_strategy: 'automatic' });
    let child: ChildProcess | undefined;
    const running = worker({
      type,
      exec: 'trap "exit 0" TERM; echo $$ > pid-$REEVE_TASK_ID; sleep 600 & wait',
      args: ['--grace', '0.1', '--rollback', 'echo yes > undone-$REEVE_TASK_ID'],
      started: (one) => {
        child = one;
      },
    });
    await pidIn(`pid-${tasks[0]}`);
    child?.kill('SIGTERM');
    const { code, stderr } = await running;
    expect(code).toBe(0);
    expect(stderr).toContain('given back');
    expect(await written(`undone-${tasks[0]}`)).toBe('yes');
    expect(await show(tasks[0]!)).toMatchObject({ status: 'pending', attempts: 0 });
  });

  test('while it waits for work, ends at once', async () => {
    const { type } = await work();
    let child: ChildProcess | undefined;
    const running = worker({
      type,
      exec: 'true',
      args: [],
      started: (one) => {
        child = one;
        one.stderr?.once('data', () => one.kill('SIGINT'));
      },
    });
    expect((await running).code).toBe(0);
    expect(child?.exitCode).toBe(0);
  });

  test('by draining its agent, ends when its work is done', async () => {
    const { type } = await work();
    const running = worker({ type, exec: 'true', args: [] });
    await until('it is registered', () => daemon.call('GET', `/agents/agent-of-${type}`).catch(() => undefined));
    await daemon.call('POST', `/agents/agent-of-${type}/drain`, {});
    const { code, stderr } = await running;
    expect(code).toBe(0);
    expect(stderr).toContain('gets no new work');
  });
});

test('what somebody of the same name holds is left alone, and waited for', async () => {
  const { type, tasks } = await work({}, {});
  const agent = `agent-of-${type}`;
  const { lease } = await daemon.call<{ lease: { lock_id: string } }>('POST', `/agents/${agent}/claim`, { type });
  let told: Promise<unknown> | undefined;
  const ran = await worker({
    type,
    exec: 'echo "$REEVE_TASK_ID"',
    started: ({ stderr }) =>
      stderr?.on('data', (chunk) => {
        if (String(chunk).includes(`somebody of that name has ${tasks[0]}`)) {
          told ??= daemon.call('POST', `/tasks/${tasks[0]}/complete`, { agent, lock_id: lease.lock_id });
        }
      }),
  });
  await told;
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining(`${tasks[1]} | ${tasks[1]}\n`) });
  expect(await show(tasks[0]!)).toMatchObject({ status: 'completed' });
});

test('a task that is taken away is stopped, with all that it started', async () => {
  const { type, tasks } = await work({});
  const running = worker({ type, exec: 'sleep 600 & echo $! > pid-$REEVE_TASK_ID; wait', args: ['--once'] });
  const pid = await pidIn(`pid-${tasks[0]}`);
  const { lock_id } = await show(tasks[0]!);
  await daemon.call('POST', `/tasks/${tasks[0]}/drop`, { agent: `agent-of-${type}`, lock_id });
  const { code, stderr } = await running;
  expect(code).toBe(1);
  expect(stderr).toContain('the lease was lost');
  expect(await isRunning(pid)).toBe(false);
});

describe('reeve run', () => {
  const run = (args: readonly string[]) => reeve(['run', '--data-dir', daemon.dataDir, ...args], { cwd: folder.path });

  test('runs a command under a task and passes on its exit code', async () => {
    const { tasks, type } = await work({}, {});
    const options = ['--data-dir', daemon.dataDir, '--type', type];
    const go = (task: string, script: string) =>
      reeve(['run', task, ...options, '--', 'sh', '-c', script], { cwd: folder.path, input: 'typed' });
    const done = await go(tasks[0]!, 'cat; echo "{\\"notes\\":\\"$REEVE_TASK_ID\\"}" >&3');
    expect(done).toMatchObject({ code: 0, stdout: 'typed' });
    expect((await show(tasks[0]!)).result).toMatchObject({ notes: tasks[0] });
    expect(await go(tasks[1]!, 'exit 42')).toMatchObject({ code: 42 });
    expect(await show(tasks[1]!)).toMatchObject({ attempts: 1 });
  });

  test('says why a task cannot be had', async () => {
    expect(await run(['NO-SUCH-TASK', '--agent', 'ann', '--', 'true'])).toMatchObject({ code: 3 });
    const { tasks } = await work({});
    await daemon.call('POST', `/tasks/${tasks[0]}/cancel`, {});
    const { code, stderr } = await run([tasks[0]!, '--agent', 'ann', '--', 'true']);
    expect(code).toBe(5);
    expect(stderr).toContain(`${tasks[0]} cannot be taken now`);
  });

  test('goes on with a task that its agent has already, and takes no other for it', async () => {
    const { type, tasks } = await work({}, {});
    const agent = `agent-of-${type}`;
    await daemon.call('POST', `/agents/${agent}/claim`, { type, task: tasks[0] });
    const other = await run([tasks[1]!, '--agent', agent, '--type', type, '--', 'true']);
    expect(other).toMatchObject({ code: 5, stderr: expect.stringContaining(`hands full with ${tasks[0]}`) });
    expect(await run([tasks[0]!, '--agent', agent, '--type', type, '--', 'true'])).toMatchObject({ code: 0 });
    expect(await show(tasks[0]!)).toMatchObject({ status: 'completed' });
  });
});

test.each([
  [['worker', '--agent', 'ann'], '--exec'],
  [['worker', '--exec', 'true'], '--agent'],
  [['worker', '--agent', 'ann', '--exec', 'true', '--concurrency', 'many'], '--concurrency'],
  [['worker', '--agent', 'ann', '--exec', 'true', '--exit-codes', '75'], '--exit-codes'],
])('%j is refused', async (args, problem) => {
  const { code, stderr } = await reeve(args, { cwd: folder.path });
  expect(code).toBe(2);
  expect(stderr).toContain(problem);
});
