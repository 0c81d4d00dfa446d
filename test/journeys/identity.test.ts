import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { onlyObject, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';

const asked = (daemon: TestDaemon, words: string, env: Record<string, string> = {}) =>
  reeve([...words.split(' '), '--json'], { cwd: daemon.cwd, env });
const secretOf = async (daemon: TestDaemon, words: string, env = {}) =>
  String(onlyObject(await asked(daemon, words, env)).token);

test('from the first token on, commands bring one: by flag, environment or the file that only its owner reads', async () => {
  await using daemon = await startDaemon();
  const status = async (words = '', env = {}) => (await asked(daemon, `status ${words}`.trim(), env)).code;
  expect(onlyObject(await asked(daemon, 'status'))).toMatchObject({ identity: 'local' });

  const admin = await secretOf(daemon, 'token create --label first');
  expect(onlyObject(await asked(daemon, 'status', { REEVE_TOKEN: admin }))).toMatchObject({ identity: 'tokens' });
  expect([await status(), await status(`--token ${admin}`), await status('--token reeve_wrong')]).toEqual([4, 0, 4]);

  await secretOf(daemon, 'token create --save', { REEVE_TOKEN: admin });
  const kept = join(daemon.dataDir, 'token');
  expect((await stat(kept)).mode & 0o777).toBe(0o600);
  expect(await status()).toBe(0);
  // Not to a daemon that was named: it may be anyone's.
  expect(await status(`--url ${daemon.url}`)).toBe(4);
  await chmod(kept, 0o644);
  expect(await status()).toBe(4);
});

test('an agent with a token of its own drains the queue under its name', async () => {
  await using daemon = await startDaemon();
  const admin = { REEVE_TOKEN: await secretOf(daemon, 'token create') };
  await asked(daemon, 'user add bot-1 --roles agent', admin);
  const bot = { REEVE_TOKEN: await secretOf(daemon, 'token create --user bot-1', admin) };

  const claimed = onlyObject(await asked(daemon, 'next --agent bot-1', bot)) as { task: { task_id: string } };
  expect((await asked(daemon, 'next --agent bot-2', bot)).code).toBe(4);
  expect((await asked(daemon, `done ${claimed.task.task_id} --agent bot-1`, bot)).code).toBe(0);
  expect((await asked(daemon, 'user remove bot-1', admin)).code).toBe(0);
  expect((await asked(daemon, 'next --agent bot-1', bot)).code).toBe(4);
});

test('whoever owns the database and is locked out lets himself in, and the audit says so', async () => {
  await using daemon = await startDaemon();
  await secretOf(daemon, 'token create');
  const rescue = { REEVE_TOKEN: await secretOf(daemon, 'token create --offline --label rescue') };
  expect(onlyObject(await asked(daemon, 'whoami', rescue))).toMatchObject({ user: 'local', roles: ['admin'] });
  const { items } = onlyObject(await asked(daemon, 'token list', rescue)) as { items: object[] };
  expect(items).toContainEqual(expect.objectContaining({ label: 'rescue', created_by: 'offline' }));
});

test('listening beyond this machine works once a token exists', async () => {
  await using first = await startDaemon();
  const admin = await secretOf(first, 'token create');
  await first.stop();
  await using wide = await startDaemon({ cwd: first.cwd, args: ['--http-host', '0.0.0.0'] });
  const port = new URL(wide.url).port;
  const ask = (headers = {}) => fetch(`http://127.0.0.1:${port}/api/v1/status`, { headers });
  expect([(await ask()).status, (await ask({ authorization: `Bearer ${admin}` })).status]).toEqual([401, 200]);
});
