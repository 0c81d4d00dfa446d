import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { createPrdBridge, type PrdBridge } from '../../../src/coordinator/prd/bridge.ts';
import { silentLog } from '../../../src/log.ts';
import { runChild, sourceUrl } from '../../support/child.ts';
import { aPrdFile, FORMAT_A, FORMAT_B, makePrdFile, rowA, rowB, type TestPrdFile } from '../../support/prd-db.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { aLedger, type TaskLedger } from '../../support/task-ledger.ts';
import { undeclaredKeys } from '../../support/undeclared-keys.ts';
import { until } from '../../support/until.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
beforeEach(() => redis.flush());
afterEach(async () => assert.deepEqual(await undeclaredKeys(redis.client()), []));
afterAll(() => redis.stop());

interface Estate {
  readonly prd: TestPrdFile;
  readonly ledger: TaskLedger;
  readonly bridge: PrdBridge;
}

/** A task file that was read once, the ledger it was read into, and the bridge between them; nothing runs by itself. */
async function anEstate(prd: TestPrdFile, { clock = systemClock }: { clock?: Clock } = {}): Promise<Estate> {
  const ledger = await aLedger(redis);
  const bridge = aBridge(prd.path, ledger, clock);
  await bridge.pullOnce();
  return { prd, ledger, bridge };
}

function aBridge(path: string, ledger: TaskLedger, clock = systemClock): PrdBridge {
  const bridge = createPrdBridge({ path, sink: ledger, clock, log: silentLog });
  onTestFinished(() => bridge.stop());
  return bridge;
}

const edit = ({ prd }: Estate, sql: string) => void prd.file.exec(sql);
const logged = ({ prd }: Estate) =>
  prd.file.prepare('select event_type from redis_coordination order by id').pluck().all();

describe('there and back', () => {
  test('all rows are admitted, and what becomes of them is written back', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2', { status: 'completed' })));
    const { ledger, bridge, prd } = estate;
    expect([ledger.station('T-1'), ledger.station('T-2')]).toEqual(['ready', 'done']);
    await ledger.act('T-1', 'task_started', 'working');
    await ledger.act('T-1', 'task_completed', 'done');
    expect(await bridge.pushOnce()).toEqual({ logged: 2, written: 1 });
    expect(prd.row('T-1')).toMatchObject({ status: 'completed', assigned_agent: 'agent-001' });
    expect(logged(estate)).toEqual(['task_started', 'task_completed']);
    expect(await redis.client().xlen('odyssey:coord:outbox')).toBe(0);
  });

  test('reading again, without an edit, changes nothing on either side', async () => {
    const { bridge, prd } = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    const before = prd.row('T-1');
    expect(await bridge.pullOnce()).toEqual({ admitted: 0, amended: 0, cancelled: 0, corrected: 0 });
    expect(prd.row('T-1')).toEqual(before);
  });

  test('a daemon that dies after the commit and before the acknowledgement leaves no row out and none twice', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    const { ledger, bridge, prd } = estate;
    for (const event of ['a', 'b', 'c']) await ledger.act('T-1', event, 'working');
    ledger.failSettling = 1;
    await expect(bridge.pushOnce()).rejects.toThrow('died before settling');
    await ledger.act('T-1', 'd', 'done');
    const successor = aBridge(prd.path, ledger);
    expect(await successor.pushOnce()).toEqual({ logged: 1, written: 1 });
    expect(logged(estate)).toEqual(['a', 'b', 'c', 'd']);
  });

  /** Writes back in a process of its own, which stops where it is told to, or as soon as the writing takes long. */
  const aWriter = (prd: TestPrdFile, step: string) =>
    runChild(`
      const load = (file) => import(${JSON.stringify(sourceUrl(''))} + file);
      const { systemClock: clock } = await load('clock.ts');
      const { silentLog: log } = await load('log.ts');
      const { connectRedis } = await load('redis/connection.ts');
      const { keyspace } = await load('redis/keys.ts');
      const { Outbox } = await load('coordinator/tasks/outbox.ts');
      const { createPrdBridge } = await load('coordinator/prd/bridge.ts');
      const target = () => ({ kind: 'standalone', address: 'test', options: ${JSON.stringify(redis.options)} });
      const connection = connectRedis({ target, clock, log, commandTimeoutMs: 5000, connectTimeoutMs: 5000, name: 'w' });
      await connection.start();
      const outbox = new Outbox({ connection, keys: keyspace({ mode: 'standalone' }) });
      const at = async (step) => {
        if (step !== ${JSON.stringify(step)}) return;
        console.log(JSON.stringify(step));
        await new Promise(() => setInterval(() => {}, 1000));
      };
      const outcomes = async (limit) => {
        await at('asked');
        const found = await outbox.read(limit);
        await at('read');
        console.log('"writing"');
        return found;
      };
      const settle = async (ids) => {
        await at('written');
        await outbox.settle(ids);
        await at('settled');
      };
      await createPrdBridge({ path: ${JSON.stringify(prd.path)}, sink: { outcomes, settle }, clock, log }).pushOnce();
      await at('done');`);
  /** Makes a write of a status last, so that one can be killed in the middle of it. */
  const SLOW = `create trigger slow after update on tasks begin insert into tasks (title) select count(*) from
    (with recursive n (i) as (select 1 union all select i + 1 from n where i < 300000000) select i from n); end`;

  test.each(['asked', 'read', 'writing', 'written', 'settled', 'done'])(
    'killed when it has %s: no row is left out and none is there twice',
    async (step) => {
      const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
      const { ledger, prd } = estate;
      for (const id of ['T-1', 'T-2']) {
        await ledger.act(id, 'task_started', 'working');
        await ledger.act(id, 'task_completed', 'done');
      }
      if (step === 'writing') edit(estate, SLOW);
      await using writer = aWriter(prd, step);
      while ((await writer.next()) !== step);
      if (step === 'writing')
        await until('it is in the middle of a transaction', () => existsSync(`${prd.path}-journal`));
      await writer.kill('SIGKILL');
      if (step === 'writing') expect(existsSync(`${prd.path}-journal`)).toBe(true);
      edit(estate, 'drop trigger if exists slow');
      await aBridge(prd.path, ledger).pushOnce();
      const expected = ['task_started', 'task_completed', 'task_started', 'task_completed'];
      expect(logged(estate)).toEqual(expected);
      expect([prd.row('T-1').status, prd.row('T-2').status]).toEqual(['completed', 'completed']);
      expect(await redis.client().xlen('odyssey:coord:outbox')).toBe(0);
    },
  );

  test('thousands of outcomes go over in batches, in order', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    const { ledger, bridge } = estate;
    const events = Array.from({ length: 1_001 }, (_, at) => `e${at}`);
    for (const event of events) await ledger.act('T-1', event, 'working');
    expect(await bridge.pushOnce()).toMatchObject({ logged: 1_001 });
    expect(logged(estate)).toEqual(events);
  });

  test('format B goes the same way, with its own tables', async () => {
    const { ledger, bridge, prd } = await anEstate(await aPrdFile(FORMAT_B, rowB(1), rowB(2, { status: 'blocked' })));
    expect([ledger.station('1'), ledger.station('2')]).toEqual(['ready', 'waiting']);
    await ledger.act('1', 'task_failed', 'failed');
    await bridge.pushOnce();
    expect(prd.row('1').status).toBe('blocked');
    prd.file.exec(`update tasks set status = 'pending' where display_id = 1`);
    await bridge.pullOnce();
    expect(ledger.station('1')).toBe('ready');
  });

  test('10,000 rows load', async () => {
    const rows = Array.from({ length: 10_000 }, (_, at) =>
      rowA(`T-${at}`, { depends_on: at > 0 ? `["T-${at - 1}"]` : null }),
    );
    const { ledger } = await anEstate(await aPrdFile(FORMAT_A, ...rows));
    expect(ledger.tasks.size).toBe(10_000);
  });
});

describe('people edit the file while it runs', () => {
  test('within two seconds, by themselves', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const ledger = await aLedger(redis);
    const bridge = aBridge(prd.path, ledger);
    await bridge.start();
    expect(ledger.tasks.size).toBe(1);
    prd.insert('tasks', rowA('T-2'));
    await until('the new task', () => ledger.tasks.has('T-2'));
    await ledger.act('T-2', 'task_completed', 'done');
    await until('its result', () => prd.row('T-2').status === 'completed');
  });

  test('a person completes what an agent works on', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    await estate.ledger.act('T-1', 'task_started', 'working');
    await estate.bridge.pushOnce();
    edit(estate, `update tasks set status = 'completed'`);
    await estate.bridge.pullOnce();
    expect(estate.ledger.station('T-1')).toBe('done');
  });

  test('a person opens a task again after its completion', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    await estate.ledger.act('T-1', 'task_completed', 'done');
    await estate.bridge.pushOnce();
    edit(estate, `update tasks set status = 'pending'`);
    await estate.bridge.pullOnce();
    expect(estate.ledger.station('T-1')).toBe('ready');
  });

  test('a person cancels a task before the daemon has written that it runs', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    await estate.ledger.act('T-1', 'task_started', 'working');
    edit(estate, `update tasks set status = 'cancelled'`);
    await estate.bridge.pushOnce();
    expect(estate.prd.row('T-1').status).toBe('cancelled');
    await estate.bridge.pullOnce();
    expect(estate.ledger.station('T-1')).toBe('cancelled');
    expect(estate.prd.row('T-1').status).toBe('cancelled');
  });

  test('an edit made in the same second as a completion does not undo it, and other fields are still merged', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    await estate.ledger.act('T-1', 'task_completed', 'done');
    edit(estate, `update tasks set status = 'in_progress', title = 'Renamed'`);
    await estate.bridge.pushOnce();
    await estate.bridge.pullOnce();
    expect(estate.ledger.station('T-1')).toBe('done');
    expect(estate.ledger.tasks.get('T-1')!.task.title).toBe('Renamed');
    expect(estate.prd.row('T-1')).toMatchObject({ status: 'completed', title: 'Renamed' });
  });

  test('a person deletes the row of a running task, edits its dependencies, or puts one before it', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
    await estate.ledger.act('T-1', 'task_started', 'working');
    await estate.ledger.act('T-2', 'task_started', 'working');
    await estate.bridge.pushOnce();
    edit(estate, `delete from tasks where task_id = 'T-1'`);
    estate.prd.insert('tasks', rowA('T-3'));
    edit(estate, `update tasks set depends_on = '["T-3"]' where task_id = 'T-2'`);
    expect(await estate.bridge.pullOnce()).toEqual({ admitted: 1, amended: 1, cancelled: 1, corrected: 0 });
    expect(estate.ledger.calledOff).toEqual(['T-1']);
    expect(estate.ledger.tasks.get('T-2')!.task.depends_on).toEqual(['T-3']);
    expect(await estate.bridge.pullOnce()).toMatchObject({ cancelled: 0 });
  });

  test('a row that becomes unreadable is quarantined with the reason until it is mended', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1', { depends_on: '[]' })));
    edit(estate, `update tasks set depends_on = '[oops'`);
    await estate.bridge.pullOnce();
    expect(estate.ledger.tasks.get('T-1')!.quarantine).toMatch(/no JSON list of task ids: "\[oops"/);
    expect(await estate.bridge.check()).toMatchObject({ quarantined: 1 });
    edit(estate, `update tasks set depends_on = '[]'`);
    await estate.bridge.pullOnce();
    expect(estate.ledger.tasks.get('T-1')!.quarantine).toBeUndefined();
  });

  test('an edit made while no daemon ran is seen by the next one', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    await estate.ledger.act('T-1', 'task_completed', 'done');
    await estate.bridge.pushOnce();
    edit(estate, `update tasks set status = 'pending'`);
    await aBridge(estate.prd.path, estate.ledger).pullOnce();
    expect(estate.ledger.station('T-1')).toBe('ready');
  });
});

describe('the file is away for a while', () => {
  test('locked by another: nothing is lost, its state says so, and it goes on by itself', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const ledger = await aLedger(redis);
    const bridge = aBridge(prd.path, ledger);
    await bridge.start();
    prd.file.exec('begin exclusive');
    await ledger.act('T-1', 'task_completed', 'done');
    await until('the trouble', () =>
      bridge.check().then(
        () => false,
        (error) => error.code === 'PRD_LOCKED',
      ),
    );
    prd.file.exec('commit');
    await until('the result', () => prd.row('T-1').status === 'completed');
    const calm = await until('the state', () => bridge.check().catch(() => undefined));
    expect(calm).toEqual({ format: 'A', tasks: 1, quarantined: 0, refused: 0 });
  });

  test('locked for writing while a person edits: what was read is remembered once it can be', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
    edit(estate, `update tasks set status = 'blocked' where task_id = 'T-1'`);
    edit(estate, 'begin immediate');
    estate.prd.file.exec(`update tasks set title = title`);
    await expect(estate.bridge.pullOnce()).rejects.toMatchObject({ code: 'PRD_LOCKED' });
    edit(estate, 'rollback');
    await estate.ledger.act('T-1', 'task_completed', 'done');
    await estate.bridge.pushOnce();
    await estate.bridge.pullOnce();
    expect(estate.prd.row('T-1').status).toBe('completed');
    expect(estate.ledger.station('T-1')).toBe('done');
  });

  test('deleted: outcomes wait in Redis until it is back', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    const { prd, bridge, ledger } = estate;
    await rename(prd.path, `${prd.path}.aside`);
    await ledger.act('T-1', 'task_completed', 'done');
    await expect(bridge.pushOnce()).rejects.toMatchObject({ code: 'PRD_UNREADABLE' });
    expect(await redis.client().xlen('odyssey:coord:outbox')).toBe(1);
    await rename(`${prd.path}.aside`, prd.path);
    expect(await bridge.pushOnce()).toEqual({ logged: 1, written: 1 });
    expect(ledger.calledOff).toEqual([]);
  });

  test('replaced by a backup: it was not edited, so it is brought up to date', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
    const { prd, bridge, ledger } = estate;
    await copyFile(prd.path, `${prd.path}.backup`);
    await ledger.act('T-1', 'task_completed', 'done');
    await bridge.pushOnce();
    await rename(`${prd.path}.backup`, prd.path);
    expect(await bridge.pullOnce()).toMatchObject({ admitted: 0, amended: 0, corrected: 1 });
    expect(reopen(prd).row('T-1')).toMatchObject({ status: 'completed' });
    expect(ledger.station('T-1')).toBe('done');
  });

  test('made anew from its SQL: finished work stays finished, new rows join', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
    const { prd, bridge, ledger } = estate;
    await ledger.act('T-1', 'task_completed', 'done');
    await bridge.pushOnce();
    const fresh = makePrdFile(
      `${prd.path}.new`,
      FORMAT_A,
      rowA('T-1'),
      rowA('T-2', { status: 'completed' }),
      rowA('T-3'),
    );
    fresh.file.close();
    await rename(`${prd.path}.new`, prd.path);
    await bridge.pullOnce();
    expect([ledger.station('T-1'), ledger.station('T-2'), ledger.station('T-3')]).toEqual(['done', 'done', 'ready']);
    expect(reopen(prd).row('T-1')).toMatchObject({ status: 'completed' });
  });

  test('emptied: nothing is cancelled for it', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2')));
    edit(estate, 'delete from tasks');
    await expect(estate.bridge.pullOnce()).rejects.toMatchObject({ code: 'PRD_EMPTIED' });
    expect(estate.ledger.calledOff).toEqual([]);
    estate.prd.insert('tasks', rowA('T-1'), rowA('T-2'));
    expect(await estate.bridge.pullOnce()).toMatchObject({ cancelled: 0 });
  });

  test('damaged, cut short, or no database any more: said so, and read again when it is mended', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, ...Array.from({ length: 500 }, (_, at) => rowA(`T-${at}`))));
    const { prd, bridge, ledger } = estate;
    prd.file.close();
    await copyFile(prd.path, `${prd.path}.good`);
    for (const damage of [() => truncate(prd.path, 9_000), () => writeFile(prd.path, 'Dear diary, '.repeat(500))]) {
      await damage();
      await expect(aBridge(prd.path, ledger).pullOnce()).rejects.toMatchObject({ code: 'PRD_UNREADABLE' });
    }
    await rm(prd.path);
    await copyFile(`${prd.path}.good`, prd.path);
    await bridge.pullOnce();
    expect(ledger.calledOff).toEqual([]);
  });

  test('behind a symbolic link that is turned to another file', async () => {
    const first = await aPrdFile(FORMAT_A, rowA('T-1'));
    const second = await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2'));
    const link = join(first.path, '..', 'link.db');
    await symlink(first.path, link);
    const ledger = await aLedger(redis);
    const bridge = aBridge(link, ledger);
    await bridge.pullOnce();
    await rm(link);
    await symlink(second.path, link);
    await bridge.pullOnce();
    expect(ledger.tasks.size).toBe(2);
  });

  test('turned into the other format', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('1'), rowA('2')));
    makePrdFile(`${estate.prd.path}.new`, FORMAT_B, rowB(1), rowB(2, { status: 'completed' }), rowB(3)).file.close();
    await rename(`${estate.prd.path}.new`, estate.prd.path);
    await estate.bridge.pullOnce();
    expect(await estate.bridge.check()).toMatchObject({ format: 'B', tasks: 3 });
    expect(estate.ledger.station('2')).toBe('done');
  });

  test('a write-ahead log and a change of the journal mode make no difference', async () => {
    const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
    estate.prd.file.pragma('journal_mode = wal');
    edit(estate, `update tasks set title = 'In the log'`);
    await estate.bridge.pullOnce();
    expect(estate.ledger.tasks.get('T-1')!.task.title).toBe('In the log');
    await estate.ledger.act('T-1', 'task_completed', 'done');
    await estate.bridge.pushOnce();
    expect(estate.prd.row('T-1').status).toBe('completed');
  });
});

test('when Redis has lost everything, it is filled from the file again, as things stood', async () => {
  const estate = await anEstate(await aPrdFile(FORMAT_B, rowB(1), rowB(2), rowB(3)));
  const { ledger, bridge } = estate;
  await ledger.act('1', 'task_failed', 'failed');
  await ledger.act('2', 'task_started', 'working');
  await bridge.pushOnce();
  ledger.tasks.clear();
  await redis.flush();
  expect(await bridge.pullOnce()).toMatchObject({ admitted: 3 });
  expect([ledger.station('1'), ledger.station('2'), ledger.station('3')]).toEqual(['failed', 'working', 'ready']);
});

test('the outbox lets through what nobody can read, rather than stopping at it', async () => {
  const estate = await anEstate(await aPrdFile(FORMAT_A, rowA('T-1')));
  await redis.client().xadd('odyssey:coord:outbox', '*', 'what', 'ever', 'payload', '{not json');
  await estate.ledger.act('T-1', 'task_completed', 'done');
  expect(await estate.bridge.pushOnce()).toEqual({ logged: 2, written: 1 });
  expect(logged(estate)).toEqual(['unknown', 'task_completed']);
});

/** The person's connection still shows the file it opened; look at the one of that name now. */
const reopen = ({ path }: TestPrdFile): TestPrdFile =>
  makePrdFile(path, `${FORMAT_A}`.replace('create table', 'create table if not exists'));
