import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type TestRooms, targetOf, theRooms } from '../support/rooms.ts';
import { aDoor, anOpenDoor, type Door } from './door.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());

const rooms = () => theRooms(targetOf(redis.options));
type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> };
const bearing = (token: string, more: Init = {}): RequestInit => ({
  ...more,
  headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more.headers },
});
const post = (body: unknown): Init => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** A door that needs tokens, and one of each role. */
async function closed(): Promise<{
  door: Door;
  room: TestRooms;
  admin: string;
  of: (role: string) => Promise<string>;
}> {
  const room = await rooms();
  const door = await anOpenDoor(room);
  const made = await door.get('/api/v1/tokens', post({}));
  expect(made.status).toBe(201);
  const { token: admin } = (await made.json()) as { token: string };
  const of = async (role: string) => {
    const user = `${role}-1`;
    await door.get('/api/v1/users', bearing(admin, post({ user, roles: [role] })));
    const answer = await door.get('/api/v1/tokens', bearing(admin, post({ user })));
    return ((await answer.json()) as { token: string }).token;
  };
  return { door, room, admin, of };
}

test('the first token closes every door of the daemon but what is open to anyone', async () => {
  const { door, admin } = await closed();
  for (const path of ['/api/v1/status', '/api/v1/tasks', '/api/v1/events', '/metrics', '/api/v1/tokens']) {
    const answer = await door.get(path);
    expect([path, answer.status]).toEqual([path, 401]);
    expect(await answer.json()).toMatchObject({ code: 'UNAUTHENTICATED', next: expect.stringContaining('--token') });
    expect([path, (await door.get(path, bearing(admin))).status]).toEqual([path, 200]);
  }
  for (const path of ['/healthz', '/readyz', '/docs', '/api/v1/openapi.json']) {
    expect([path, (await door.get(path)).status]).toEqual([path, 200]);
  }
});

test('tools need a token as every other call does', async () => {
  const { door, admin } = await closed();
  const call = {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
  };
  const without = await door.get('/mcp', { ...call, headers: { ...call.headers, 'content-type': 'application/json' } });
  expect(without.status).toBe(401);
  expect((await door.get('/mcp', bearing(admin, call))).status).toBe(200);
});

test('a header or a body that claims a role, a user or an address is not believed', async () => {
  const { door, of } = await closed();
  const author = await of('author');
  const claims = { 'x-user': 'local', 'x-roles': 'admin', 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' };
  expect((await door.get('/api/v1/status', { headers: claims })).status).toBe(401);
  const raised = await door.get(
    '/api/v1/users',
    bearing(author, { ...post({ user: 'eve', roles: ['admin'] }), headers: claims }),
  );
  expect(raised.status).toBe(403);
  const who = await door.get('/api/v1/sessions/current', bearing(author, { headers: claims }));
  expect(await who.json()).toMatchObject({ user: 'author-1', roles: ['author'] });
});

test('an agent works under its own name and no other', async () => {
  const { door, of } = await closed();
  const agent = await of('agent');
  const claim = (id: string) => door.get(`/api/v1/agents/${id}/claim`, bearing(agent, post({})));
  expect((await claim('agent-1')).status).toBe(204);
  const refused = await claim('someone-else');
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, 'DENIED']);
  expect((await door.get('/api/v1/pause', bearing(agent, post({ what: 'all', reason: 'x' })))).status).toBe(403);
});

test('nobody gives what it has not: a narrowed token of an admin makes no wider one', async () => {
  const { door, admin } = await closed();
  const answer = await door.get('/api/v1/tokens', bearing(admin, post({ scopes: ['read', 'admin'] })));
  const { token: narrow } = (await answer.json()) as { token: string };
  expect((await door.get('/api/v1/tokens', bearing(narrow, post({})))).status).toBe(403);
  expect((await door.get('/api/v1/tokens', bearing(narrow, post({ scopes: ['read'] })))).status).toBe(201);
  expect((await door.get('/api/v1/users', bearing(narrow, post({ user: 'eve', roles: ['reviewer'] })))).status).toBe(
    403,
  );
});

test('a browser signs in with a token and keeps a cookie that no script reads and no other site sends', async () => {
  const { door, of } = await closed();
  const token = await of('reviewer');
  const begun = await door.get('/api/v1/sessions', post({ token }));
  expect(begun.status).toBe(201);
  const cookie = begun.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^reeve_session=[\w-]{43}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Strict$/);
  const [pair = ''] = cookie.split(';');
  expect(JSON.stringify(await begun.json())).not.toContain(pair.split('=')[1]);

  const who = () => door.get('/api/v1/sessions/current', { headers: { cookie: `theme=dark; ${pair}` } });
  expect(await (await who()).json()).toMatchObject({
    user: 'reviewer-1',
    session_id: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const foreign = { cookie: pair, origin: 'https://evil.example' };
  expect((await door.get('/api/v1/sessions/current', { headers: foreign })).status).toBe(403);

  const left = await door.get('/api/v1/sessions/current', { method: 'DELETE', headers: { cookie: pair } });
  expect(await left.json()).toEqual({ ended: true });
  expect(left.headers.get('set-cookie')).toContain('Max-Age=0');
  expect((await who()).status).toBe(401);
});

test('a session that was brought along ends when another begins, and one that was made up is none', async () => {
  const { door, of } = await closed();
  const token = await of('reviewer');
  const begin = async (cookie?: string) => {
    const answer = await door.get('/api/v1/sessions', {
      ...post({ token }),
      headers: { 'content-type': 'application/json', ...(cookie && { cookie }) },
    });
    return (answer.headers.get('set-cookie') ?? '').split(';')[0] as string;
  };
  const status = async (cookie: string) => (await door.get('/api/v1/sessions/current', { headers: { cookie } })).status;
  const first = await begin('reeve_session=index:user:u1');
  const second = await begin(first);
  expect(first).not.toContain('index');
  expect([await status(first), await status(second)]).toEqual([401, 200]);
  for (const made of ['index:user:reviewer-1', 'a'.repeat(64), '../x', '%00']) {
    expect(await status(`reeve_session=${made}`)).toBe(401);
  }
  expect((await door.get('/api/v1/sessions', post({ token: 'reeve_nothing' }))).status).toBe(401);
});

test('listening beyond this machine is refused until a token exists', async () => {
  const room = await rooms();
  await expect(aDoor(room, { host: '0.0.0.0' }).start()).rejects.toMatchObject({ code: 'INSECURE_BIND' });
  await room.tokens.create({ user: 'local', by: 'local' });
  const door = await anOpenDoor(room, { host: '0.0.0.0' });
  const port = new URL(door.url).port;
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/status`, { headers: { host: 'reeve.example' } });
  expect(answer.status).toBe(401);
});

test('an audit row says who asked, from where and with what words', async () => {
  const { door, room, admin } = await closed();
  await door.get('/api/v1/users', bearing(admin, post({ user: 'ann' })));
  const headers = { authorization: `Bearer ${admin}`, 'user-agent': 'curl/8' };
  await door.get('/api/v1/users/ann?reason=left', { method: 'DELETE', headers });
  const rows = await room.store.db.selectFrom('audit_intake').select('body').orderBy('id').execute();
  expect(JSON.parse(rows.at(-1)?.body ?? '')).toMatchObject({
    user: 'local',
    action: 'user.remove',
    subject: 'user:ann',
    door: 'http',
    ip: '127.0.0.1',
    user_agent: 'curl/8',
    operation: 'user.remove',
    reason: 'left',
    cmd_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
});

test('who asks too often waits, by who it is and not by what it says it is; a crowd shares a limit', async () => {
  const each = { perMinute: 1, burst: 2 };
  const limits = {
    'tasks:create': { each, all: { perMinute: 1, burst: 3 } },
    'approvals:respond': { each, all: each },
  };
  const room = await theRooms(targetOf(redis.options), { limits });
  await room.tokens.create({ user: 'local', by: 'local' });
  const door = await anOpenDoor(room);
  const [ann = '', ben = ''] = await Promise.all(
    ['lim-ann', 'lim-ben'].map(async (id) => {
      await room.users.add({ id, roles: ['author'] });
      return (await room.tokens.create({ user: id, by: 'local' })).token;
    }),
  );
  let made = 0;
  const add = (token: string, headers: Record<string, string> = {}) =>
    door.get('/api/v1/tasks', bearing(token, { ...post({ task: `LIM-${++made}`, title: 'x' }), headers }));

  expect([(await add(ann)).status, (await add(ann)).status]).toEqual([201, 201]);
  const third = await add(ann, { 'x-forwarded-for': '10.9.9.9', 'x-agent': 'other' });
  expect(third.status).toBe(429);
  expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(30);
  expect(await third.json()).toMatchObject({ code: 'RATE_LIMITED', detail: expect.stringContaining('lim-ann') });
  expect((await add(ben)).status).toBe(201);
  const crowd = await add(ben);
  expect([crowd.status, ((await crowd.json()) as { detail: string }).detail]).toEqual([
    429,
    expect.stringContaining('Everyone'),
  ]);
});

test('an author changes, submits and calls off its own tasks; those of others are for who runs the place', async () => {
  const { door, room, admin, of } = await closed();
  const ann = await of('author');
  await room.users.add({ id: 'own-ben', roles: ['author'] });
  const { token: ben } = await room.tokens.create({ user: 'own-ben', by: 'local' });
  expect((await door.get('/api/v1/tasks', bearing(ann, post({ task: 'OWN-1', title: 'x' })))).status).toBe(201);
  const asks = [
    ['PATCH', '/api/v1/tasks/OWN-1', { title: 'y' }, 200],
    ['POST', '/api/v1/tasks/OWN-1/submit', {}, 202],
    ['POST', '/api/v1/tasks/OWN-1/cancel', {}, 200],
  ] as const;
  for (const [method, path, body, status] of asks) {
    const by = async (token: string) => (await door.get(path, bearing(token, { ...post(body), method }))).status;
    expect([path, await by(ben)]).toEqual([path, 403]);
    expect([path, await by(ann)]).toEqual([path, status]);
  }
  await door.get('/api/v1/tasks', bearing(ann, post({ task: 'OWN-2', title: 'x' })));
  expect((await door.get('/api/v1/tasks/OWN-2/cancel', bearing(admin, post({})))).status).toBe(200);
});
