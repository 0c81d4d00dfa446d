import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type CommandOptions, runCommand } from '../../../src/cli/worker/command.ts';
import { systemClock } from '../../../src/clock.ts';
import { runChild, sourceUrl } from '../../support/child.ts';
import { plainEnv } from '../../support/cli.ts';
import { fakeClock } from '../../support/clock.ts';
import { testFolder } from '../../support/folder.ts';
import { isRunning, until } from '../../support/until.ts';

const never = new AbortController().signal;
const written = (file: string) => readFile(file, 'utf8').catch(() => '');
const pidIn = (file: string) => until(`a process id in ${file}`, async () => Number(await written(file)) || undefined);

const command = (script: string, cwd: string, more: Partial<CommandOptions> = {}): CommandOptions => ({
  argv: ['/bin/sh', '-c', script],
  cwd,
  env: plainEnv(),
  stdio: ['ignore', 'pipe', 'pipe', 'ignore'],
  clock: systemClock,
  stops: { lost: never, told: never, forced: never },
  ...more,
});

describe('the end of a command', () => {
  test('is its exit code, with what it wrote', async () => {
    using folder = testFolder();
    const ran = await runCommand(command('echo out; echo err >&2; exit 3', folder.path));
    expect(ran).toMatchObject({ code: 3, stopped: undefined });
    expect(ran.output.text.split('\n').toSorted()).toEqual(['', 'err', 'out']);
  });

  test('may be a signal that it got from elsewhere', async () => {
    using folder = testFolder();
    expect(await runCommand(command('kill -KILL $$', folder.path))).toMatchObject({
      signal: 'SIGKILL',
      stopped: undefined,
    });
  });

  test('takes along what it left in the background, and does not wait for it', async () => {
    using folder = testFolder();
    const ran = await runCommand(command('sleep 600 & echo $! > left; echo done', folder.path));
    expect(ran).toMatchObject({ code: 0, output: { text: 'done\n' } });
    const left = await pidIn(join(folder.path, 'left'));
    await until('what was left is gone', async () => !(await isRunning(left)));
  });

  test('a program that does not exist ends with 127, as in a shell', async () => {
    using folder = testFolder();
    const argv = ['./nothing-of-that-name'] as const;
    expect(await runCommand({ ...command('', folder.path), argv })).toMatchObject({ code: 127 });
  });
});

describe('a command that is stopped', () => {
  test('is asked with SIGTERM, all of its group, and may tidy up', async () => {
    using folder = testFolder();
    const told = new AbortController();
    const script = 'trap "echo tidy; exit 7" TERM; sleep 600 & echo $! > child; wait';
    const running = runCommand(
      command(script, folder.path, { stops: { lost: never, told: told.signal, forced: never } }),
    );
    const child = await pidIn(join(folder.path, 'child'));
    told.abort('SIGTERM');
    expect(await running).toMatchObject({ code: 7, stopped: 'told', output: { text: 'tidy\n' } });
    await until('its child is gone', async () => !(await isRunning(child)));
  });

  test('is killed when it does not listen', async () => {
    using folder = testFolder();
    const lost = new AbortController();
    const clock = fakeClock();
    const script = 'trap "" TERM; echo $$ > pid; while :; do sleep 600; done';
    const running = runCommand(
      command(script, folder.path, { clock, stops: { lost: lost.signal, told: never, forced: never } }),
    );
    const pid = await pidIn(join(folder.path, 'pid'));
    lost.abort();
    await clock.asleep();
    expect(await isRunning(pid)).toBe(true);
    const ending = running.then((ran) => ran);
    await clock.advance(10_000);
    await until('it is gone', async () => !(await isRunning(pid)));
    expect(await ending).toMatchObject({ signal: 'SIGKILL', stopped: 'lost' });
  });

  test('is not asked at all when it is forced', async () => {
    using folder = testFolder();
    const forced = new AbortController();
    const script = 'trap "" TERM; echo $$ > pid; while :; do sleep 600; done';
    const running = runCommand(
      command(script, folder.path, { stops: { lost: never, told: never, forced: forced.signal } }),
    );
    await pidIn(join(folder.path, 'pid'));
    forced.abort();
    expect(await running).toMatchObject({ signal: 'SIGKILL', stopped: 'forced' });
  });

  test('took too long', async () => {
    using folder = testFolder();
    const clock = fakeClock();
    const running = runCommand(command('exec sleep 600', folder.path, { clock, timeoutMs: 60_000 }));
    await clock.asleep();
    await clock.advance(60_000);
    expect(await running).toMatchObject({ signal: 'SIGTERM', stopped: 'timeout' });
  });
});

describe('silence', () => {
  test('is alarming once for as long as it lasts, and again after the next word', async () => {
    using folder = testFolder();
    const clock = fakeClock();
    const alarms: number[] = [];
    const told = new AbortController();
    const heard: string[] = [];
    const silence = { afterMs: 1_000, isFatal: false, alarm: (quietMs: number) => void alarms.push(quietMs) };
    const passOn = { prefix: '', stdout: (text: string) => void heard.push(text), stderr: () => {} };
    const script = 'while :; do while [ ! -e word ]; do sleep 0.02; done; rm word; echo word; done';
    const running = runCommand(
      command(script, folder.path, {
        clock,
        silence,
        passOn,
        stops: { lost: never, told: told.signal, forced: never },
      }),
    );
    await clock.asleep();
    await clock.advance(5_000);
    expect(alarms).toEqual([1_000]);
    folder.write('word', '');
    await until('it says something', () => heard.length === 1);
    await clock.advance(2_000);
    expect(alarms).toHaveLength(2);
    told.abort('SIGTERM');
    expect(await running).toMatchObject({ stopped: 'told' });
  });

  test('ends the command where that is wanted', async () => {
    using folder = testFolder();
    const clock = fakeClock();
    const silence = { afterMs: 1_000, isFatal: true, alarm: () => {} };
    const running = runCommand(command('exec sleep 600', folder.path, { clock, silence }));
    await clock.asleep();
    await clock.advance(1_000);
    expect(await running).toMatchObject({ signal: 'SIGTERM', stopped: 'silence' });
  });
});

test('a host that is killed takes its commands along', async () => {
  using folder = testFolder();
  const file = join(folder.path, 'pid');
  const code = `
    import { startLeashed } from '${sourceUrl('cli/worker/leash.ts')}';
    startLeashed({
      argv: ['/bin/sh', '-c', 'echo $$ > ${file}; exec sleep 600'],
      cwd: '/', env: process.env, stdio: ['ignore', 'ignore', 'ignore', 'ignore'],
    });
    console.log('1');`;
  await using host = runChild(code);
  await host.next();
  const pid = await pidIn(file);
  await host.kill('SIGKILL');
  expect(await until('the command is gone', async () => !(await isRunning(pid)))).toBe(true);
});
