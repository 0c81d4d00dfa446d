import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { createDaemon, type Daemon } from '../../src/daemon.ts';
import { silentLog } from '../../src/log.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';
import { aManifest } from '../support/sync.ts';
import { until } from '../support/until.ts';

const SECRET = 'sesame';
let github: GithubStandIn;
let daemon: Daemon;
let dir: string;

beforeAll(async () => {
  github = await startGithub();
  github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
  dir = await mkdtemp(join(tmpdir(), 'reeve-journey-'));
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    GITHUB_REPO: github.name,
    GITHUB_TOKEN: github.token,
    GITHUB_API_URL: github.url,
    GITHUB_WEBHOOK_SECRET: SECRET,
    REEVE_HTTP_PORT: '0',
    REEVE_DATA_DIR: dir,
    REEVE_SYNC_SCHEDULE: 'off',
  };
  const loaded = loadConfig({ env, cwd: dir });
  daemon = createDaemon({ loaded: () => loaded, log: silentLog, version: '0.0.0', cwd: dir, env, onFatal: () => {} });
  await daemon.start();
});
afterAll(async () => {
  await daemon.stop();
  await github[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const get = async (path: string) => (await fetch(`${daemon.url}${path}`)).json() as Promise<Record<string, never>>;
const status = async () => {
  const { dependencies } = (await get('/api/v1/status')) as unknown as {
    dependencies: { name: string; ok: boolean; next?: string; code?: string; facts: Record<string, unknown> }[];
  };
  return dependencies.find(({ name }) => name === 'assets')!;
};

test('an asset travels from a push to the API: webhook, sync, registry, events, figures', async () => {
  await until('the first sync', async () => (await fetch(`${daemon.url}/api/v1/assets/a`)).ok);
  const commit = github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
  const { body, headers } = github.delivery('push', github.push(commit), SECRET);
  const delivered = await fetch(`${daemon.url}/webhook/github/github`, { method: 'POST', headers, body });
  expect([delivered.status, await delivered.json()]).toEqual([202, { says: 'accepted', sources: ['github'] }]);
  await until('the new asset', async () => (await fetch(`${daemon.url}/api/v1/assets/b`)).ok);
  expect(await get('/api/v1/assets/b')).toMatchObject({ id: 'b', github_path: 'prompts/b.yaml' });
  expect(await get('/api/v1/sync')).toMatchObject({ items: [{ name: 'github', state: 'idle', commit, assets: 2 }] });
  expect(await get('/api/v1/sync/changes?limit=1')).toMatchObject({ items: [{ op: 'added', id: 'b', commit }] });
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toMatch(/^reeve_github_rate_limit_remaining\{source="github"\} 49\d\d$/m);
  expect(await status()).toMatchObject({ ok: true, facts: { state: 'in step', assets: 2 } });
});

test('a forged or oversized delivery is refused', async () => {
  const { body, headers } = github.delivery('push', github.push(github.repo.head()), 'wrong');
  const forged = await fetch(`${daemon.url}/webhook/github`, { method: 'POST', headers, body });
  expect([forged.status, await forged.json()]).toMatchObject([401, { code: 'WEBHOOK_REFUSED' }]);
  const huge = await fetch(`${daemon.url}/webhook/github`, {
    method: 'POST',
    headers,
    body: Buffer.alloc(26 * 2 ** 20),
  });
  expect(huge.status).toBe(413);
});

test('a source in trouble shows in the status with what to do next, and is well again by hand', async () => {
  github.fault({ status: 401, body: '{"message":"Bad credentials"}' });
  const started = await fetch(`${daemon.url}/api/v1/sync`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(started.status).toBe(202);
  await until('the trouble', async () => !(await status()).ok);
  expect(await status()).toMatchObject({ code: 'SOURCE_UNAUTHORIZED', next: expect.stringContaining('GITHUB_TOKEN') });
  github.healthy();
  await fetch(`${daemon.url}/api/v1/sync`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  await until('the cure', async () => (await status()).ok);
  const { items } = (await get('/api/v1/sync/runs')) as unknown as { items: { outcome: string }[] };
  expect(items.map(({ outcome }) => outcome).slice(0, 2)).toEqual(['unchanged', 'failed']);
});

test('an asset is written back through the API as a commit, guarded by what the caller saw', async () => {
  const { github_sha } = (await get('/api/v1/assets/a')) as unknown as { github_sha: string };
  const put = (ifMatch: string) =>
    fetch(`${daemon.url}/api/v1/assets/a`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'if-match': `"${ifMatch}"` },
      body: JSON.stringify({ set: { version: '1.1.0' } }),
    });
  const late = await put('e'.repeat(40));
  expect([late.status, await late.json()]).toMatchObject([
    409,
    { code: 'ASSET_CHANGED', details: { expected: 'e'.repeat(40), actual: github_sha } },
  ]);
  expect((await put(github_sha)).status).toBe(200);
  expect(await get('/api/v1/assets/a')).toMatchObject({ version: '1.1.0' });
  expect(github.repo.git(['show', 'main:prompts/a.yaml'])).toContain('version: 1.1.0');
  expect(github.repo.git(['log', '-1', '--format=%s'])).toBe('Update a to 1.1.0');
});
