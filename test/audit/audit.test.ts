import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { canonicalJson, linkHash, START } from '../../src/audit/chain.ts';
import { drainAlone, drainOnce } from '../../src/audit/drain.ts';
import { recordChange } from '../../src/audit/intake.ts';
import { systemClock } from '../../src/clock.ts';
import { aDirectory } from '../store/builders.ts';
import { type PostgresServer, postgresForTests } from '../support/postgres.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';
import { type AuditRoom, anAuditRoom } from './room.ts';

let redis: RedisRoom;
beforeAll(async () => {
  redis = await aRedisRoom();
});
afterEach(() => redis.reset());
afterAll(() => redis[Symbol.asyncDispose]());

const postgres = await postgresForTests();
describe('on SQLite', () => {
  conforms(async () => anAuditRoom(redis, `sqlite:${join(await aDirectory(), 'test.db')}`));
});
describe.skipIf(postgres.missing !== undefined)('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgres.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  conforms(async () => anAuditRoom(redis, await server.createDatabase()));
});

test('the same value has the same canonical text, whatever the order of its names', () => {
  expect(canonicalJson({ b: [1, { d: null, c: undefined, a: 'ü"' }], a: true })).toBe(
    '{"a":true,"b":[1,{"a":"ü\\"","d":null}]}',
  );
  expect(canonicalJson({ a: true, b: [1, { a: 'ü"', d: null }] })).toBe(
    canonicalJson({ b: [1, { d: null, a: 'ü"' }], a: true }),
  );
});

function conforms(aRoom: () => Promise<AuditRoom>) {
  let room: AuditRoom;
  beforeEach(async () => {
    room = await aRoom();
  });
  const all = () => room.store.db.selectFrom('audit_log').selectAll().orderBy('seq').execute();
  const kept = async () => [(await room.audit.kept())!];

  describe('the drain', () => {
    test('copies every row once, in order, chained, and leaves the outbox empty', async () => {
      await room.write(3);
      expect(await room.drain()).toBe(3);
      const rows = await all();
      expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(rows[0]?.hash).toBe(linkHash(START.hash, rows[0]!.record));
      expect(rows[2]?.hash).toBe(linkHash(rows[1]!.hash, rows[2]!.record));
      expect(await redis.client.xlen(redis.keys.auditOutbox())).toBe(0);
      expect(await room.drain()).toBe(0);
      expect(await room.audit.kept()).toEqual({ seq: 3, hash: rows[2]?.hash });
    });

    test('keeps who, what, when, where and why; a reason of the script wins over that of the caller', async () => {
      await room.write(1);
      await room.write(1, { reason: 'its lease ran out', detail: '{"n":1}' });
      await room.drain();
      const [first, second] = await room.audit.list({ limit: 10 });
      expect(first).toMatchObject({
        seq: 1,
        at: '2026-01-01T00:00:00.000001Z',
        user: 'ann',
        ip: '10.0.0.7',
        action: 'claim',
        subject: 'task:T-1',
        task: 'T-1',
        from: 'APPROVED',
        to: 'APPLYING',
        reason: 'from the caller',
        fencing_token: '1731912345000123',
      });
      expect(second).toMatchObject({ reason: 'its lease ran out', detail: { n: 1 } });
    });

    test('that died after its commit and before it trimmed repeats nothing and loses nothing', async () => {
      await room.write(5);
      const before = await redis.client.xrange(redis.keys.auditOutbox(), '-', '+');
      await room.drain();
      // What was trimmed is back, and more has come since: as if the trim had never been.
      await redis.client.del(redis.keys.auditOutbox());
      for (const [id, fields] of before) await redis.client.xadd(redis.keys.auditOutbox(), id, ...fields);
      await room.write(3);
      expect(await room.drain()).toBe(3);
      expect((await all()).map(({ subject }) => subject)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((n) => `task:T-${n}`));
      expect(await room.audit.verify(await kept())).toMatchObject({ ok: true, rows: 8 });
    });

    test('that cannot commit leaves the rows where they are', async () => {
      await room.write(2);
      await room.store.stop();
      await expect(room.drain()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect(await room.audit.waiting()).toBe(2);
      await room.store.start();
      expect(await room.drain()).toBe(2);
    });

    test('takes any number of rows, and those of changes that were made in the store', async () => {
      await room.write(2_500);
      await room.store.db
        .transaction()
        .execute((tx) =>
          recordChange(tx, systemClock, 'test', { action: 'user.add', subject: 'user:ann', to: 'active' }),
        );
      expect(await room.drain()).toBe(2_501);
      expect(await room.audit.list({ subject: 'user:ann', limit: 5 })).toEqual([
        expect.objectContaining({ user: 'system', action: 'user.add', to: 'active', from: '' }),
      ]);
      expect(await room.audit.verify(await kept())).toMatchObject({ ok: true, rows: 2_501 });
    });

    test('is one at a time among all daemons, and two at once would still make one chain', async () => {
      await room.write(50);
      await redis.client.set(redis.keys.jobLock('audit-drain'), 'another', 'PX', 60_000);
      expect(await drainAlone(room.options)).toEqual({ rows: 0 });
      await redis.client.del(redis.keys.jobLock('audit-drain'));
      await Promise.allSettled([drainOnce(room.options), drainOnce(room.options), drainOnce(room.options)]);
      await room.drain();
      expect(await room.audit.verify(await kept())).toMatchObject({ ok: true, rows: 50 });
    });

    test('keeps what a raw client wrote, however odd', async () => {
      await redis.client.xadd(redis.keys.auditOutbox(), '*', 'hello', 'world', 'actor', 'not json');
      expect(await room.drain()).toBe(1);
      expect(await room.audit.list({ limit: 1 })).toEqual([
        expect.objectContaining({ hello: 'world', user: 'unknown' }),
      ]);
    });
  });

  describe('verify', () => {
    beforeEach(async () => {
      await room.write(10);
      await room.drain();
    });
    const table = () => room.store.db;
    const verdict = async () => room.audit.verify(await kept());

    test('finds nothing wrong with what nobody touched', async () => {
      const rows = await all();
      expect(await verdict()).toEqual({
        ok: true,
        rows: 10,
        head: { seq: 10, hash: rows[9]?.hash },
        kept: { seq: 10, hash: rows[9]?.hash },
      });
    });

    test('names the row that was edited', async () => {
      const record = (await all())[4]!.record.replace('ann', 'eve');
      await table().updateTable('audit_log').set({ record }).where('seq', '=', 5).execute();
      expect(await verdict()).toMatchObject({ ok: false, rows: 4, broken: { seq: 5 } });
    });

    test('names the row that was edited together with its own hash by the one after it', async () => {
      const rows = await all();
      const record = rows[4]!.record.replace('ann', 'eve');
      const hash = linkHash(rows[3]!.hash, record);
      await table().updateTable('audit_log').set({ record, hash }).where('seq', '=', 5).execute();
      expect(await verdict()).toMatchObject({ ok: false, rows: 5, broken: { seq: 6 } });
    });

    test('names the row that was removed', async () => {
      await table().deleteFrom('audit_log').where('seq', '=', 7).execute();
      expect(await verdict()).toMatchObject({ ok: false, rows: 6, broken: { seq: 7, problem: /missing/ } as never });
    });

    test('finds the same in a log of many pages, whether a row was edited, removed, or moved from one page to another', async () => {
      await room.write(10_000);
      await room.drain();
      expect(await verdict()).toMatchObject({ ok: true, rows: 10_010 });
      const rows = await all();
      const put = async (seq: number, change: { record?: string; hash?: string; seq?: number }) =>
        table().updateTable('audit_log').set(change).where('seq', '=', seq).execute();
      await put(7_001, { record: rows[7_000]!.record.replace('ann', 'eve') });
      expect(await verdict()).toMatchObject({ ok: false, rows: 7_000, broken: { seq: 7_001 } });
      await put(4_000, { hash: rows[4_000]!.hash });
      expect(await verdict()).toMatchObject({ ok: false, rows: 3_999, broken: { seq: 4_000 } });
      await put(3_000, { seq: 20_000 });
      expect(await verdict()).toMatchObject({
        ok: false,
        rows: 2_999,
        broken: { seq: 3_000, problem: /missing/ } as never,
      });
    });

    test('finds a beginning that was cut off', async () => {
      await table().deleteFrom('audit_log').where('seq', '<=', 3).execute();
      expect(await verdict()).toMatchObject({ ok: false, rows: 0, broken: { seq: 1 } });
    });

    test('finds two rows that changed places', async () => {
      const move = (from: number, to: number) =>
        table().updateTable('audit_log').set({ seq: to }).where('seq', '=', from).execute();
      await move(3, 99);
      await move(4, 3);
      await move(99, 4);
      expect(await verdict()).toMatchObject({ ok: false, rows: 2, broken: { seq: 3 } });
    });

    test('finds a tail that was cut off, by the head that was kept', async () => {
      await table().deleteFrom('audit_log').where('seq', '>', 8).execute();
      expect(await verdict()).toMatchObject({ ok: false, rows: 8, broken: { seq: 9 } });
      expect(await room.audit.verify([])).toMatchObject({ ok: true, rows: 8 });
    });

    test('finds a chain that was made anew from some row on, by a head that was kept', async () => {
      const rows = await all();
      let { hash } = rows[4]!;
      for (const row of rows.slice(5)) {
        const record = row.record.replace('ann', 'eve');
        hash = linkHash(hash, record);
        await table().updateTable('audit_log').set({ record, hash }).where('seq', '=', row.seq).execute();
      }
      expect(await room.audit.verify([])).toMatchObject({ ok: true });
      expect(await verdict()).toMatchObject({ ok: false, broken: { seq: 10 } });
      // Also by one that somebody copied from the log, when Redis has none or was changed as well.
      expect(await room.audit.verify([{ seq: 7, hash: rows[6]!.hash }])).toMatchObject({
        ok: false,
        broken: { seq: 7 },
      });
    });

    test('finds an edit of what is searched by, for there is none: it is the record', async () => {
      await expect(
        table()
          .updateTable('audit_log')
          .set({ user_id: 'eve' } as never)
          .where('seq', '=', 5)
          .execute(),
      ).rejects.toThrow(/generated|only be updated to DEFAULT/i);
    });
  });

  test('lists by task, user, action and time, newest page first, and pages from a number on', async () => {
    await room.write(5);
    await room.write(2, { action: 'complete', actor: '{"user":"ben"}', subject: 'approval:T-9.1', task: 'T-9' });
    await room.drain();
    const seqs = async (range: Partial<Parameters<AuditRoom['audit']['list']>[0]>) =>
      (await room.audit.list({ limit: 100, ...range })).map(({ seq }) => seq);
    expect(await seqs({ limit: 3 })).toEqual([5, 6, 7]);
    expect(await seqs({ after: 2, limit: 3 })).toEqual([3, 4, 5]);
    expect(await seqs({ user: 'ben' })).toEqual([6, 7]);
    expect(await seqs({ task: 'T-9', action: 'complete' })).toEqual([6, 7]);
    expect(await seqs({ task: 'T-2' })).toEqual([2]);
    expect(await seqs({ since: '2026-01-01T00:00:00.000002Z', until: '2026-01-01T00:00:00.000004Z' })).toEqual([2, 3]);
  });
}
