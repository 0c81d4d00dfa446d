import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDaemon } from '../support/daemon.ts';
import { aPathWith } from '../support/path.ts';
import { until } from '../support/until.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-systemd-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** Stands in for the program systemd-notify and writes down what it was told: Node cannot listen where systemd does. */
async function aListener() {
  const bin = await aPathWith(join(folder, 'bin'), 'redis-server', 'valkey-server');
  const heard = join(folder, 'heard');
  const script = `#!/bin/sh\n[ -n "$NOTIFY_SOCKET" ] && echo "$*" >> '${heard}'\n`;
  await writeFile(join(bin, 'systemd-notify'), script, { mode: 0o755 });
  return { bin, heard: async () => (await readFile(heard, 'utf8').catch(() => '')).trim().split('\n') };
}

test('systemd hears of readiness, life, reload and stop', async () => {
  const { bin, heard } = await aListener();
  const env = { PATH: bin, NOTIFY_SOCKET: '/run/nobody/listens', WATCHDOG_USEC: '300000' };
  await using daemon = await startDaemon({ cwd: folder, env });

  expect((await heard())[0]).toBe(`--pid=${daemon.pid} --ready --status=ready at ${daemon.url}`);
  await until('the watchdog is told', async () => (await heard()).some((line) => line.includes('WATCHDOG=1')));

  daemon.signal('SIGHUP');
  await until('the reload is told, and its end', async () => {
    const lines = await heard();
    return lines
      .slice(lines.findIndex((line) => line.endsWith('--reloading')))
      .some((line) => line.endsWith('--ready'));
  });

  expect(await daemon.stop()).toBe(0);
  expect((await heard()).at(-1)).toContain('STOPPING=1');
});

test('a listener that is gone does not hold up anything', async () => {
  const bin = await aPathWith(join(folder, 'bin'), 'redis-server', 'valkey-server');
  await using daemon = await startDaemon({ cwd: folder, env: { PATH: bin, NOTIFY_SOCKET: '/run/nobody/listens' } });

  await daemon.logged('systemd-notify does not run');
  expect(await daemon.stop()).toBe(0);
});
