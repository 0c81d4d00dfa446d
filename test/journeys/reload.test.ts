import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDaemon } from '../support/daemon.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-reload-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

const configure = (text: string) => writeFile(join(folder, 'reeve.yaml'), text);

interface Shown {
  readonly settings: { readonly log: { readonly level: string }; readonly events: { readonly keep: number } };
}

test('SIGHUP takes over the log level at once and says what needs a restart', async () => {
  await configure('log:\n  level: info\n');
  await using daemon = await startDaemon({ cwd: folder });
  const shown = async () => ((await daemon.get('/api/v1/config')).body as Shown).settings;

  await configure('log:\n  level: debug\nevents:\n  keep: 500\n');
  daemon.signal('SIGHUP');
  const told = await daemon.logged('configuration read again');

  expect(told).toMatchObject({ changed: ['log.level', 'events.keep'], needRestart: ['events.keep'] });
  await daemon.get('/healthz');
  await daemon.logged('request answered');
  // What is shown is what is in use.
  expect(await shown()).toMatchObject({ log: { level: 'debug' }, events: { keep: 10_000 } });
  const { items } = (await daemon.get('/api/v1/events')).body as { items: { event: string; payload: object }[] };
  expect(items.find(({ event }) => event === 'config:reloaded')?.payload).toEqual({
    changed: ['log.level', 'events.keep'],
    need_restart: ['events.keep'],
  });
});

test('what needs a restart is named again by the next SIGHUP, until it had one', async () => {
  await using daemon = await startDaemon({ cwd: folder });
  await configure('events:\n  keep: 500\n');
  daemon.signal('SIGHUP');
  await daemon.logged('configuration read again');
  daemon.signal('SIGHUP');

  expect(await daemon.logged('configuration read again', 1)).toMatchObject({ needRestart: ['events.keep'] });
});

test('a configuration that is wrong is refused, and the old one stays', async () => {
  await configure('log:\n  level: info\n');
  await using daemon = await startDaemon({ cwd: folder });

  await configure('log:\n  level: loud\n');
  daemon.signal('SIGHUP');
  const { problem } = await daemon.logged('the new configuration was not taken');

  expect(problem).toContain('log.level');
  expect((await daemon.get('/readyz')).status).toBe(200);
  expect(((await daemon.get('/api/v1/config')).body as Shown).settings.log.level).toBe('info');
});
