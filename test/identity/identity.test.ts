import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { actAs } from '../../src/actor.ts';
import { readOutbox } from '../../src/audit/outbox.ts';
import type { Knock } from '../../src/identity/caller.ts';
import { type PostgresServer, postgresForTests } from '../support/postgres.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';
import { anIdentityRoom, type IdentityRoom } from './room.ts';

const DAY = 86_400_000;
const HERE: Knock = { ip: '127.0.0.1', userAgent: 'test' };
const bearer = (token: string): Knock => ({ ...HERE, authorization: `Bearer ${token}` });
const refused = expect.objectContaining({ code: 'UNAUTHENTICATED' });

let redis: RedisRoom;
beforeAll(async () => {
  redis = await aRedisRoom();
});
afterEach(() => redis.reset());
afterAll(() => redis[Symbol.asyncDispose]());

const postgres = await postgresForTests();
describe('on SQLite', () => {
  conforms(() => anIdentityRoom(redis));
});
describe.skipIf(postgres.missing !== undefined)('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgres.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  conforms(async () => anIdentityRoom(redis, await server.createDatabase()));
});

function conforms(aRoom: () => Promise<IdentityRoom>) {
  describe('before the first token', () => {
    test('whoever is on this machine is the admin local, and nobody else is anybody', async () => {
      const { doorkeeper } = await aRoom();
      expect(await doorkeeper.admit(HERE)).toMatchObject({ id: 'local', roles: ['admin'], ip: '127.0.0.1' });
      expect(await doorkeeper.admit({ ip: '::ffff:127.0.0.1' })).toMatchObject({ id: 'local' });
      for (const ip of ['10.0.0.7', '::ffff:10.0.0.7', '2001:db8::1', '128.0.0.1', '']) {
        await expect(doorkeeper.admit({ ip })).rejects.toEqual(refused);
      }
      expect(await doorkeeper.needsTokens()).toBe(false);
    });

    test('the first token must be that of an admin who can use it, or everybody would be locked out', async () => {
      const { doorkeeper, users, tokens } = await aRoom();
      await users.add({ id: 'ann', roles: ['author'] });
      const lastAdmin = expect.objectContaining({ code: 'LAST_ADMIN' });
      await expect(tokens.create({ user: 'ann', by: 'local' })).rejects.toEqual(lastAdmin);
      await expect(tokens.create({ user: 'local', scopes: ['read'], by: 'local' })).rejects.toEqual(lastAdmin);
      expect(await doorkeeper.admit(HERE)).toMatchObject({ id: 'local' });
    });
  });

  describe('from the first token on', () => {
    test('every call needs one, also on this machine, also after it was revoked or ran out', async () => {
      const { doorkeeper, tokens, clock } = await aRoom();
      const { token, first } = await tokens.create({ user: 'local', expiresInMs: DAY, by: 'local' });

      expect(first).toBe(true);
      await expect(doorkeeper.admit(HERE)).rejects.toEqual(refused);
      expect(await doorkeeper.admit(bearer(token))).toMatchObject({ id: 'local', roles: ['admin'] });
      await clock.advance(DAY);
      await expect(doorkeeper.admit(bearer(token))).rejects.toEqual(refused);
      await expect(doorkeeper.admit(HERE)).rejects.toEqual(refused);
    });

    test('a token works until the last moment of its life', async () => {
      const { doorkeeper, tokens, clock } = await aRoom();
      const { token } = await tokens.create({ user: 'local', expiresInMs: DAY, by: 'local' });
      await clock.advance(DAY - 1);
      expect(await doorkeeper.admit(bearer(token))).toMatchObject({ id: 'local' });
    });

    test.each(['reeve_', 'Basic dXNlcjpwYXNz', 'Bearer', 'Bearer a b', `Bearer reeve_${'A'.repeat(43)}`, 'Bearer x'])(
      'what is no token is none: %s',
      async (authorization) => {
        const { doorkeeper, tokens } = await aRoom();
        await tokens.create({ user: 'local', by: 'local' });
        await expect(doorkeeper.admit({ ...HERE, authorization })).rejects.toEqual(refused);
      },
    );
  });

  describe('a token', () => {
    test('is kept as a hash, and shown once', async () => {
      const { tokens, store } = await aRoom();
      const { token, token_id } = await tokens.create({ user: 'local', label: 'laptop', by: 'local' });

      expect(token).toMatch(/^reeve_[\w-]{43}$/);
      const rows = await store.db.selectFrom('tokens').selectAll().execute();
      const intake = await store.db.selectFrom('audit_intake').selectAll().execute();
      expect(JSON.stringify([rows, intake, await tokens.list()])).not.toContain(token.slice(6));
      expect(await tokens.list()).toEqual([expect.objectContaining({ token_id, label: 'laptop', state: 'live' })]);
    });

    test('is dead at once when it is revoked, its user removed, or its user’s role taken', async () => {
      const { doorkeeper, users, tokens } = await aRoom();
      await tokens.create({ user: 'local', by: 'local' });
      for (const id of ['ann', 'ben', 'cid']) await users.add({ id, roles: ['reviewer'] });
      const made = async (user: string) => tokens.create({ user, by: 'local' });
      const [ann, ben, cid] = [await made('ann'), await made('ben'), await made('cid')];

      await tokens.revoke(ann.token_id);
      await users.remove('ben');
      await users.set('cid', { roles: ['author'] });

      await expect(doorkeeper.admit(bearer(ann.token))).rejects.toEqual(refused);
      await expect(doorkeeper.admit(bearer(ben.token))).rejects.toEqual(refused);
      const left = await doorkeeper.admit(bearer(cid.token));
      expect([left.access.has('decide'), left.access.has('create')]).toEqual([false, true]);
    });

    test('that is narrowed allows no more than its scopes, whatever its user may do', async () => {
      const { doorkeeper, tokens } = await aRoom();
      await tokens.create({ user: 'local', by: 'local' });
      const { token } = await tokens.create({ user: 'local', scopes: ['read'], by: 'local' });
      expect([...(await doorkeeper.admit(bearer(token))).access].toSorted()).toEqual(['open', 'read']);
    });

    test('remembers to the minute when it was used', async () => {
      const { doorkeeper, tokens, clock } = await aRoom();
      const { token } = await tokens.create({ user: 'local', by: 'local' });
      const lastUse = async () => (await tokens.list())[0]?.last_used_at;
      expect(await lastUse()).toBeUndefined();
      await doorkeeper.admit(bearer(token));
      await clock.advance(59_000);
      await doorkeeper.admit(bearer(token));
      expect(await lastUse()).toBe('2026-01-01T00:00:00.000Z');
      await clock.advance(1_000);
      await doorkeeper.admit(bearer(token));
      expect(await lastUse()).toBe('2026-01-01T00:01:00.000Z');
    });

    test('of the last admin cannot be revoked, nor can the last admin be removed or lose the role', async () => {
      const { users, tokens } = await aRoom();
      const { token_id } = await tokens.create({ user: 'local', by: 'local' });
      const lastAdmin = expect.objectContaining({ code: 'LAST_ADMIN' });
      await expect(tokens.revoke(token_id)).rejects.toEqual(lastAdmin);
      await expect(users.remove('local')).rejects.toEqual(lastAdmin);
      await expect(users.set('local', { roles: ['author'] })).rejects.toEqual(lastAdmin);

      await users.add({ id: 'ann', roles: ['admin'] });
      await expect(users.remove('local')).rejects.toEqual(lastAdmin);
      await tokens.create({ user: 'ann', by: 'local' });
      expect(await users.remove('local')).toMatchObject({ state: 'removed' });
    });
  });

  describe('a person', () => {
    test.each(['Ann', 'ANN', '0xann', 'ann@example.com', 'ANN@Example.com', 'ann-gh'])(
      'is nobody else: %s',
      async (name) => {
        const { users } = await aRoom();
        await users.add({ id: 'ann', roles: ['author'], email: 'ann@example.com', aliases: ['Ann-GH'] });
        expect((await users.find(name))?.id).toBe('ann');
        await expect(users.add({ id: 'other', roles: ['author'], aliases: [name] })).rejects.toMatchObject({
          code: 'NAME_TAKEN',
          details: { user: 'ann' },
        });
      },
    );

    test('that was removed stays known, and its names stay taken', async () => {
      const { users } = await aRoom();
      await users.add({ id: 'ann', roles: ['author'], aliases: ['a1'] });
      await users.remove('a1');
      expect(await users.get('ann')).toMatchObject({ state: 'removed', removed_at: expect.any(String) });
      await expect(users.add({ id: 'ANN', roles: ['admin'] })).rejects.toMatchObject({ code: 'NAME_TAKEN' });
      await expect(users.set('ann', { roles: ['admin'] })).rejects.toMatchObject({ code: 'USER_REMOVED' });
    });

    test('has a manager who is there and is not itself', async () => {
      const { users } = await aRoom();
      const stranger = expect.objectContaining({ code: 'USER_UNKNOWN' });
      await expect(users.add({ id: 'ann', roles: ['author'], manager: 'nobody' })).rejects.toEqual(stranger);
      await users.add({ id: 'ann', roles: ['author'], manager: 'local' });
      await expect(users.set('ann', { manager: 'ann' })).rejects.toEqual(stranger);
      expect(await users.set('ann', { manager: '' })).not.toHaveProperty('manager');
    });

    test('gives up names it no longer has', async () => {
      const { users } = await aRoom();
      await users.add({ id: 'ann', roles: ['author'], aliases: ['one', 'two'] });
      expect(await users.set('ann', { aliases: ['two', 'three'] })).toMatchObject({ aliases: ['three', 'two'] });
      await expect(users.add({ id: 'one', roles: ['author'] })).resolves.toMatchObject({ id: 'one' });
    });

    test('leaves an audit row with every change, in the transaction of the change', async () => {
      const { users, store } = await aRoom();
      await users.add({ id: 'ann', roles: ['author'] });
      await users.add({ id: 'ANN', roles: ['author'] }).catch(() => {});
      await users.remove('ann');
      const rows = await store.db.selectFrom('audit_intake').selectAll().orderBy('id').execute();
      expect(rows.map(({ body }) => JSON.parse(body))).toEqual([
        expect.objectContaining({ action: 'user.add', subject: 'user:ann', from: '', to: 'active', user: 'system' }),
        expect.objectContaining({ action: 'user.remove', subject: 'user:ann', from: 'active', to: 'removed' }),
      ]);
    });
  });

  describe('a session', () => {
    async function signedIn(user = 'ann') {
      const room = await aRoom();
      await room.tokens.create({ user: 'local', by: 'local' });
      await room.users.add({ id: user, roles: ['reviewer'] });
      const { token } = await room.tokens.create({ user, by: 'local' });
      const holder = (await room.tokens.bearerOf(token))!;
      const { secret, session } = await room.sessions.begin(holder, { ip: '10.0.0.7', userAgent: 'browser' });
      return { ...room, secret, session, holder };
    }

    test('stands for its user, under an id that nobody can make a secret of', async () => {
      const { doorkeeper, secret, session } = await signedIn();
      expect(await doorkeeper.admit({ ...HERE, session: secret })).toMatchObject({
        id: 'ann',
        roles: ['reviewer'],
        session: session.session_id,
      });
      await expect(doorkeeper.admit({ ...HERE, session: session.session_id })).rejects.toEqual(refused);
      expect(session.session_id).not.toContain(secret);
    });

    test('is kept under the prescribed keys, fields and lifetime', async () => {
      const { session } = await signedIn();
      const key = redis.keys.session(session.session_id);
      expect(key).toBe(`ade:session:${session.session_id}`);
      expect(await redis.client.hgetall(key)).toMatchObject({
        user_id: 'ann',
        user_name: 'ann',
        roles: '["reviewer"]',
        ip_address: '10.0.0.7',
        user_agent: 'browser',
      });
      expect(await redis.client.ttl(key)).toBe(86_400);
      expect(await redis.client.smembers('ade:session:index:user:ann')).toEqual([session.session_id]);
    });

    test.each([
      ['its user is removed', ({ users }: IdentityRoom) => users.remove('ann')],
      ['its user gets other roles', ({ users }: IdentityRoom) => users.set('ann', { roles: ['admin'] })],
      ['a day is over', ({ clock }: IdentityRoom) => clock.advance(DAY)],
      ['an admin ends it', ({ sessions }: IdentityRoom) => sessions.endAll({ id: 'ann' })],
    ])('is over when %s', async (_, end) => {
      const room = await signedIn();
      await end(room);
      await expect(room.doorkeeper.admit({ ...HERE, session: room.secret })).rejects.toEqual(refused);
    });

    test('is audited when it begins and when it ends, each once, as what its user or an admin did', async () => {
      await redis.client.del(redis.keys.auditOutbox());
      const { sessions, session } = await signedIn();
      const admin = { user: 'local', door: 'http', operation: 'session.end' };
      await actAs(admin, () => Promise.all([sessions.endAll({ id: 'ann' }), sessions.end(session.session_id)]));
      const { rows } = await readOutbox(redis.connection, redis.keys, 10);
      const about = { subject: `session:${session.session_id}`, service: expect.any(String), detail: { user: 'ann' } };
      expect(rows.map(({ entry }) => entry)).toEqual([
        expect.objectContaining({ ...about, user: 'ann', action: 'session.begin', from: '', to: 'active' }),
        expect.objectContaining({ ...about, ...admin, action: 'session.end', from: 'active', to: 'ended' }),
      ]);
    });

    test('reads roles anew: what its hash says of them is not believed', async () => {
      const { doorkeeper, session, secret } = await signedIn();
      await redis.client.hset(redis.keys.session(session.session_id), 'roles', '["admin"]', 'permissions', '["admin"]');
      const caller = await doorkeeper.admit({ ...HERE, session: secret });
      expect([caller.roles, caller.access.has('admin')]).toEqual([['reviewer'], false]);
    });

    test('that has ended is not brought back by one who was still using it', async () => {
      const { sessions, secret, session, clock } = await signedIn();
      await clock.advance(120_000);
      const [, visitor] = await Promise.all([sessions.end(session.session_id), sessions.visitorOf(secret)]);
      expect(await redis.client.exists(redis.keys.session(session.session_id))).toBe(0);
      expect(visitor === undefined || visitor.user === 'ann').toBe(true);
    });
  });
}
