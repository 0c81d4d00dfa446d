import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { spawnDaemon, startDaemon, type TestDaemon } from '../support/daemon.ts';
import { aPathWith } from '../support/path.ts';
import { findTestRedis } from '../support/redis.ts';
import { isRunning, until } from '../support/until.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-stop-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** What became of one request, as its caller sees it. */
type Fate = 'answered' | 'turned away' | 'refused' | `broken: ${string}`;

function ask(url: string, path: string, agent: Agent | false): Promise<Fate> {
  return new Promise((resolve) => {
    const call = request(new URL(path, url), { agent, timeout: 10_000 }, (response) => resolve(fateOf(response)));
    call.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : `broken: ${error.code}`),
    );
    call.end();
  });
}

async function fateOf(response: IncomingMessage): Promise<Fate> {
  try {
    const body = JSON.parse(await text(response)) as { code?: string; draining?: boolean };
    if (response.statusCode === 200) return 'answered';
    return body.code === 'SHUTTING_DOWN' || body.draining ? 'turned away' : `broken: ${JSON.stringify(body)}`;
  } catch (error) {
    return `broken: the answer ended early, ${String(error)}`;
  }
}

/** Asks without pause, several at a time, until told to go elsewhere. */
async function load({ url }: TestDaemon, fates: Fate[], keepAlive: boolean): Promise<void> {
  const agent = keepAlive ? new Agent({ keepAlive, maxSockets: 8 }) : false;
  const caller = async (path: string) => {
    for (let fate: Fate = 'answered'; fate === 'answered'; fates.push(fate)) fate = await ask(url, path, agent);
  };
  const paths = ['/api/v1/status', '/api/v1/events', '/readyz', '/api/v1/doctor'];
  await Promise.all([...paths, ...paths].map(caller));
  if (agent) agent.destroy();
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s under load', (signal) => {
  test('every request is answered whole, or turned away in good order', async () => {
    await using daemon = await startDaemon();
    const redis = await daemon.redisPid();
    const fates: Fate[] = [];
    const loads = [load(daemon, fates, true), load(daemon, fates, false)];
    const stream = await fetch(`${daemon.url}/api/v1/events`, { headers: { accept: 'text/event-stream' } });
    const streamed = stream.text();
    await until('the load is on', () => fates.length > 100);

    expect(await daemon.stop(signal)).toBe(0);
    await Promise.all(loads);

    expect(fates.filter((fate) => fate.startsWith('broken'))).toEqual([]);
    expect(fates).toContain('turned away');
    // The stream was ended between two events, not torn.
    expect(await streamed).toMatch(/event: daemon:started\ndata: .*\n\n$/s);
    expect(daemon.logs.at(-1)).toMatchObject({ msg: 'stopped' });
    expect(await isRunning(redis)).toBe(false);
    expect(daemon.complaints).toBe('');
  });
});

test('a second signal does not wait for a request that hangs', async () => {
  await using daemon = await startDaemon({ args: ['--http-drain-seconds', '600'] });
  const redis = await daemon.redisPid();
  // A caller that never finishes its request keeps the door open.
  const call = request(`${daemon.url}/api/v1/status`, { method: 'POST', headers: { 'content-length': '10' } });
  call.on('error', () => {});
  call.write('{');
  await until('it is connected', () => call.socket?.readyState === 'open');

  daemon.signal('SIGTERM');
  await daemon.logged('stopping');
  daemon.signal('SIGTERM');

  expect(await daemon.exited).toBe(1);
  await daemon.logged('second signal: not waiting any longer');
  await until('its Redis ended too', async () => !(await isRunning(redis)), 15_000);
});

describe('a signal during the start', () => {
  test('ends it while Redis is still loading', async () => {
    const { version } = await findTestRedis();
    const server = join(folder, 'redis-server');
    await writeFile(
      server,
      `#!/bin/sh\n[ "$1" = --version ] && { echo 'Redis server v=${version}'; exit; }\n: > '${folder}/asked'\nexec sleep 600\n`,
      { mode: 0o755 },
    );
    await using daemon = await spawnDaemon({ cwd: folder, args: ['--redis-server', server] });
    await existing(join(folder, 'asked'));

    expect(await daemon.stop()).toBe(0);
    expect(daemon.complaints).toBe('');
  });

  test('ends it while a private Redis is being fetched', async () => {
    const bin = await aPathWith(join(folder, 'bin'));
    for (const name of ['apt-get', 'dpkg-deb', 'dpkg-query', 'ldd']) {
      await writeFile(join(bin, name), `#!/bin/sh\n: > '${folder}/asked'\nexec sleep 600\n`, { mode: 0o755 });
    }
    const env = { PATH: bin, REEVE_CACHE_DIR: join(folder, 'cache') };
    await using daemon = await spawnDaemon({ cwd: folder, env });
    await existing(join(folder, 'asked'));

    expect(await daemon.stop()).toBe(0);
    expect(daemon.complaints).toBe('');
  });

  test('ends it while a Redis elsewhere does not answer', async () => {
    await using daemon = await spawnDaemon({ env: { REDIS_URL: 'redis://127.0.0.1:1', LOG_LEVEL: 'debug' } });
    await daemon.logged('redis connection trouble');

    expect(await daemon.stop()).toBe(0);
  });
});

const existing = (file: string) => until(`${file} is there`, () => existsSync(file));
