import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { onlyObject, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { isRunning, until } from '../support/until.ts';

let daemon: TestDaemon;
beforeAll(async () => {
  const env = { REEVE_LOCKS_QUEUE_DEPTH: '2', REEVE_LOCKS_ACQUIRE_PER_MINUTE: '60', REEVE_LOCKS_ACQUIRE_BURST: '30' };
  daemon = await startDaemon({ env });
});
afterAll(() => daemon[Symbol.asyncDispose]());

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, never>>;
  readonly headers: Headers;
}
async function call(method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(new URL(`/api/v1${path}`, daemon.url), {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  return { status: response.status, body: (await response.json()) as Answer['body'], headers: response.headers };
}
const acquire = (body: object) => call('POST', '/locks', body);
const run = (args: readonly string[], started?: (child: ChildProcess) => void) =>
  reeve(args, { cwd: daemon.cwd, ...(started && { started }) });

let made = 0;
/** A lock that no other test knows. */
const aLock = () => `resource:test:${++made}`;
const at = (lock: string) => `/locks/${encodeURIComponent(lock)}`;

describe('over HTTP', () => {
  test('a free lock is held with 201; it is renewed, shown and given back, twice if need be', async () => {
    const lock = aLock();
    const held = await acquire({ lock, agent: 'ann', purpose: 'a try' });
    expect(held).toMatchObject({ status: 201, body: { outcome: 'held', lock, agent: 'ann', heartbeat_seconds: 10 } });
    const { lock_id, fencing_token } = held.body;
    expect(fencing_token).toBeGreaterThan(0);

    const message = { lock_id, agent_id: 'ann', timestamp: 1, ttl_extension: 60 };
    const beat = await call('POST', `${at(lock)}/heartbeat`, message);
    expect(beat).toMatchObject({ status: 200, body: { outcome: 'extended', heartbeats: 1 } });
    expect(Date.parse(beat.body.expires_at!)).toBeGreaterThan(Date.parse(held.body.expires_at!));

    const seen = await call('GET', at(lock));
    expect(seen.body).toMatchObject({ state: 'held', holder: 'ann', purpose: 'a try', holders: [{ lock_id }] });
    const release = `${at(lock)}?agent=ann&lock_id=${lock_id}`;
    expect(await call('DELETE', release)).toMatchObject({ status: 200, body: { outcome: 'released' } });
    expect(await call('DELETE', release)).toMatchObject({ status: 200, body: { outcome: 'already' } });
    expect((await call('GET', at(lock))).body).toMatchObject({ state: 'free', holders: [] });
  });

  test('a taken lock is 423, and says by whom, for what, until when and what to do', async () => {
    const lock = aLock();
    await acquire({ lock, agent: 'ann', purpose: 'migrating' });
    const refused = await acquire({ lock, agent: 'bob' });
    expect(refused).toMatchObject({
      status: 423,
      body: {
        code: 'LOCK_HELD',
        details: {
          hold: {
            kind: 'lock',
            subject: lock,
            holder: 'ann',
            because: expect.stringContaining('"migrating"'),
            clears_at: expect.any(String),
            actions: [expect.objectContaining({ command: `reeve lock acquire ${lock} --agent bob --wait 60` })],
          },
        },
      },
    });
  });

  test('with a wait it is 202 with a place, and 201 for the same lock_id when the lock is free', async () => {
    const lock = aLock();
    const { body: ann } = await acquire({ lock, agent: 'ann' });
    const first = await acquire({ lock, agent: 'bob', wait: 30, lock_id: 'bob-1' });
    expect(first).toMatchObject({ status: 202, body: { outcome: 'queued', lock_id: 'bob-1', position: 1 } });
    const second = await acquire({ lock, agent: 'cyd', wait: 30 });
    expect(second).toMatchObject({ status: 202, body: { position: 2 } });
    expect(await acquire({ lock, agent: 'bob', wait: 30, lock_id: 'bob-1' })).toMatchObject({ status: 202 });

    await call('DELETE', `${at(lock)}?agent=ann&lock_id=${ann.lock_id}`);
    const granted = await acquire({ lock, agent: 'bob', wait: 30, lock_id: 'bob-1' });
    expect(granted).toMatchObject({ status: 201, body: { outcome: 'held', lock_id: 'bob-1' } });
    expect(Number(granted.body.fencing_token)).toBeGreaterThan(Number(ann.fencing_token));
    const left = await call('DELETE', `${at(lock)}?agent=cyd&lock_id=${second.body.lock_id}`);
    expect(left).toMatchObject({ status: 200, body: { outcome: 'left' } });
  });

  test('a call that may block answers as soon as the lock is free', async () => {
    const lock = aLock();
    const { body: ann } = await acquire({ lock, agent: 'ann' });
    const waiting = acquire({ lock, agent: 'bob', wait: 30, block: 20 });
    await until('bob stands in line', async () => Number((await call('GET', at(lock))).body.waiting) === 1);
    await call('DELETE', `${at(lock)}?agent=ann&lock_id=${ann.lock_id}`);
    expect(await waiting).toMatchObject({ status: 201 });
  });

  test('a place that is given up while the lock comes to it leaves nobody with the lock', async () => {
    for (let round = 0; round < 10; round++) {
      const lock = `task:given-up-${round}`;
      const give = (agent: string) => call('DELETE', `${at(lock)}?agent=${agent}&lock_id=${agent}`);
      const [ann, bob] = [`ann-${round}`, `bob-${round}`];
      await acquire({ lock, agent: ann, lock_id: ann });
      const waiting = acquire({ lock, agent: bob, lock_id: bob, wait: 60, block: 20 });
      await until('bob waits', async () => (await call('GET', at(lock))).body.waiting === 1);

      const [given] = await Promise.all([give(bob), give(ann)]);

      expect(given).toMatchObject({ status: 200 });
      expect((await call('GET', at(lock))).body).toMatchObject({ state: 'free', waiting: 0 });
      await waiting;
    }
  });

  test('a full line is 503, and the operator is told', async () => {
    const lock = aLock();
    await acquire({ lock, agent: 'ann' });
    await acquire({ lock, agent: 'b1', wait: 30 });
    await acquire({ lock, agent: 'b2', wait: 30 });
    const refused = await acquire({ lock, agent: 'b3', wait: 30 });
    expect(refused).toMatchObject({
      status: 503,
      body: { code: 'QUEUE_FULL', details: { depth: 2, hold: { holder: 'ann', kind: 'lock' } } },
    });
    expect(refused.headers.get('retry-after')).toBe('5');
    const { body } = await call('GET', '/events?stream=lock&limit=50');
    expect(body.items).toContainEqual(
      expect.objectContaining({ event: 'lock:queue_full', payload: { lock, agent_id: 'b3', depth: 2 } }),
    );
  });

  test('a lock that was lost is 409: for the heartbeat, the release and the same lock_id asked for again', async () => {
    const lock = aLock();
    const { body } = await acquire({ lock, agent: 'ann', lock_id: 'lost-1' });
    expect(body.outcome).toBe('held');
    const redis = await daemon.redisClient();
    await redis.del(`ade:lock:${lock}`);
    redis.disconnect();
    const beat = await call('POST', `${at(lock)}/heartbeat`, { lock_id: 'lost-1', agent: 'ann' });
    expect(beat).toMatchObject({ status: 409, body: { code: 'LOCK_LOST' } });
    expect(await call('DELETE', `${at(lock)}?agent=ann&lock_id=lost-1`)).toMatchObject({ status: 409 });
    expect(await acquire({ lock, agent: 'ann', lock_id: 'lost-1' })).toMatchObject({ status: 409 });
  });

  test('several are taken at once or not at all', async () => {
    const [one, two, three] = [aLock(), aLock(), aLock()];
    const both = await acquire({ lock: one, also: [two], agent: 'ann' });
    expect(both).toMatchObject({ status: 201, body: { grants: [{ lock: one }, { lock: two }] } });
    expect(await acquire({ lock: three, also: [two], agent: 'bob' })).toMatchObject({ status: 423 });
    expect((await call('GET', at(three))).body).toMatchObject({ state: 'free' });
  });

  test('readers share, a writer waits, and nobody is upgraded past others', async () => {
    const lock = aLock();
    expect(await acquire({ lock, agent: 'r1', mode: 'shared', lock_id: 'r1' })).toMatchObject({ status: 201 });
    expect(await acquire({ lock, agent: 'r2', mode: 'shared' })).toMatchObject({ status: 201 });
    expect(await acquire({ lock, agent: 'w', wait: 30 })).toMatchObject({ status: 202 });
    expect(await acquire({ lock, agent: 'r3', mode: 'shared' })).toMatchObject({ status: 423 });
    const upgrade = await acquire({ lock, agent: 'r1', lock_id: 'r1' });
    expect(upgrade).toMatchObject({ status: 409, body: { code: 'LOCK_REFUSED' } });
  });

  test('an agent that asks too often is 429 with when to come back', async () => {
    const lock = aLock();
    const answers = await Promise.all(Array.from({ length: 40 }, () => acquire({ lock, agent: 'eager' })));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(5);
    expect(limited[0]?.body).toMatchObject({ code: 'RATE_LIMITED', retry_after_seconds: expect.any(Number) });
    expect(await acquire({ lock: aLock(), agent: 'calm' })).toMatchObject({ status: 201 });
  });

  test.each([
    [{ lock: 'task:a:b', agent: 'ann' }],
    [{ lock: 'nothing', agent: 'ann' }],
    [{ lock: 'task:index', agent: 'ann' }],
    [{ lock: 'task:T', agent: 'a}b' }],
    [{ lock: 'task:T', agent: 'ann', ttl: -1 }],
    [{ lock: 'task:T', agent: 'ann', ttl: 1e12 }],
    [{ lock: 'task:T', agent: 'ann', ttl: '30s' }],
    [{ lock: 'task:T', agent: 'ann', wait: 1e9 }],
    [{ lock: 'task:T' }],
    [{ lock: 'task:T', agent: 'ann', weight: 3 }],
  ])('refuses %j before anything reaches Redis', async (body) => {
    expect(await acquire(body)).toMatchObject({ status: 400 });
  });

  test.each([0, -1, 1e12, '30s', null, '1e400'])(
    'a heartbeat with ttl_extension %j is refused, and the lock lives on',
    async (ttl_extension) => {
      const lock = aLock();
      const { body } = await acquire({ lock, agent: `b${made}` });
      const refused = await call('POST', `${at(lock)}/heartbeat`, {
        lock_id: body.lock_id,
        agent: `b${made}`,
        ttl_extension,
      });
      expect(refused).toMatchObject({ status: 400 });
      const beat = await call('POST', `${at(lock)}/heartbeat`, { lock_id: body.lock_id, agent: `b${made}` });
      expect(beat).toMatchObject({ status: 200, body: { heartbeats: 1 } });
    },
  );

  test.each([
    ['deep', `{"lock":"task:T","agent":"ann","also":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, 400],
    ['a number beyond all', '{"lock":"task:T","agent":"ann","ttl":1e400}', 400],
    ['a number that is no whole one any more', '{"lock":"task:T","agent":"ann","priority":9007199254740993}', 400],
    ['a prototype', '{"lock":"task:T","agent":"ann","__proto__":{"wait":5}}', 400],
    ['half a character', '{"lock":"task:T\\ud800","agent":"ann"}', 400],
    ['not JSON', '{"lock":', 400],
    ['a list', '[]', 400],
    ['large', `{"lock":"task:T","agent":"ann","purpose":"${'x'.repeat(3_000_000)}"}`, 413],
  ])('a body that is %s is refused', async (_, body, status) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(new URL('/api/v1/locks', daemon.url), { method: 'POST', headers, body });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toContain('problem+json');
  });

  test('of two equal fields the last counts, as everywhere in JSON', async () => {
    const [one, two] = [aLock(), aLock()];
    const headers = { 'content-type': 'application/json' };
    const body = `{"lock":"${one}","lock":"${two}","agent":"twice"}`;
    const response = await fetch(new URL('/api/v1/locks', daemon.url), { method: 'POST', headers, body });
    expect(await response.json()).toMatchObject({ lock: two });
    expect((await call('GET', at(one))).body).toMatchObject({ state: 'free' });
  });

  test('a path is a resource like any other', async () => {
    const lock = 'resource:file:src/a b/{x}:ü.ts';
    expect(await acquire({ lock, agent: 'ann' })).toMatchObject({ status: 201, body: { lock } });
    expect((await call('GET', at(lock))).body).toMatchObject({ state: 'held', lock });
  });

  test('locks are listed in pages, of all, of one agent, of one type', async () => {
    const mine = [aLock(), aLock(), aLock()].map((lock) => lock.replace('test', 'listed'));
    for (const lock of mine) await acquire({ lock, agent: 'lister' });
    const { body } = await call('GET', '/locks?type=listed&limit=1000');
    const names = (items: unknown) => (items as { lock: string }[]).map(({ lock }) => lock).toSorted();
    expect(names(body.items)).toEqual(mine.toSorted());
    expect(names((await call('GET', '/locks?agent=lister&limit=1000')).body.items)).toEqual(mine.toSorted());
    const all: string[] = [];
    let cursor = '';
    do {
      const page = await call('GET', `/locks?limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      expect(names(page.body.items).length).toBeLessThanOrEqual(2);
      all.push(...names(page.body.items));
      cursor = page.body.next_cursor ?? '';
    } while (cursor !== '');
    expect(all).toEqual(expect.arrayContaining(mine));
    expect(new Set(all).size).toBe(all.length);
    expect(await call('GET', '/locks?cursor=elsewhere')).toMatchObject({ status: 400, body: { code: 'BAD_CURSOR' } });
  });

  test('a model’s lease is long, and its heartbeat without a wish renews it by as much', async () => {
    const lock = aLock();
    const held = await acquire({ lock, agent: 'model', lease_class: 'agent', ttl: 10 });
    const beat = await call('POST', `${at(lock)}/heartbeat`, { lock_id: held.body.lock_id, agent: 'model' });
    const leaseMs = Date.parse(beat.body.expires_at!) - Date.parse(held.body.acquired_at!);
    expect(leaseMs).toBeGreaterThanOrEqual(900_000);
  });

  test('agents that wait for one another: the youngest is 423 with the circle, the other goes on', async () => {
    const [one, two] = [aLock(), aLock()];
    await call('PUT', `/config/live/${encodeURIComponent('lock:heartbeat_interval')}`, { value: 1 });
    await acquire({ lock: one, agent: 'old' });
    await acquire({ lock: two, agent: 'young' });
    const older = () => acquire({ lock: two, agent: 'old', wait: 60, block: 2, lock_id: 'old-waits' });
    const younger = () => acquire({ lock: one, agent: 'young', wait: 60, block: 2, lock_id: 'young-waits' });
    expect(await acquire({ lock: two, agent: 'old', wait: 60, lock_id: 'old-waits' })).toMatchObject({ status: 202 });
    const [served, victim] = await Promise.all([
      until(
        'the older is served',
        async () => {
          const answer = await older();
          return answer.status !== 202 && answer;
        },
        20_000,
      ),
      until(
        'the younger is told',
        async () => {
          const answer = await younger();
          return answer.status !== 202 && answer;
        },
        20_000,
      ),
    ]);
    expect(victim).toMatchObject({
      status: 423,
      body: {
        code: 'DEADLOCK_DETECTED',
        details: { cycle: expect.arrayContaining([expect.objectContaining({ agent: 'young', behind: 'old' })]) },
      },
    });
    expect(served).toMatchObject({ status: 201 });
    const { body } = await daemon.get('/metrics');
    expect(body).toMatch(/reeve_deadlocks_total 1/);
  });

  test('an agent has a capacity: full is 423, draining is 409', async () => {
    const lock = 'agent:worker1';
    expect(await acquire({ lock, agent: 'worker1' })).toMatchObject({ status: 409, body: { code: 'LOCK_REFUSED' } });
    const set = await call('PUT', `${at(lock)}/capacity`, { max_tasks: 1 });
    expect(set).toMatchObject({ status: 200, body: { capacity: { max_tasks: 1, active_tasks: 0, status: 'active' } } });
    expect(await acquire({ lock, agent: 'worker1' })).toMatchObject({ status: 201 });
    expect(await acquire({ lock, agent: 'worker1' })).toMatchObject({
      status: 423,
      body: { details: { hold: { kind: 'capacity' } } },
    });
    await call('PUT', `${at(lock)}/capacity`, { status: 'draining' });
    expect(await acquire({ lock, agent: 'worker1' })).toMatchObject({ status: 409 });
  });

  test('who waits for whom is data, and why follows the chain', async () => {
    const [one, two] = [aLock(), aLock()];
    await acquire({ lock: one, agent: 'holder1', purpose: 'first' });
    await acquire({ lock: two, agent: 'holder2', purpose: 'second' });
    await acquire({ lock: two, agent: 'holder1', wait: 30 });
    const graph = await call('GET', '/locks/waitgraph');
    expect(graph.body.edges).toContainEqual(
      expect.objectContaining({ from: 'holder1', to: 'holder2', lock: two, kind: 'hard' }),
    );
    const why = await call('GET', `/why/${encodeURIComponent(one)}`);
    expect(why).toMatchObject({
      status: 200,
      body: {
        state: 'held',
        holds: [expect.objectContaining({ holder: 'holder1' })],
        chain: [{ subject: two, says: expect.stringContaining('holder2') }],
      },
    });
    expect(await call('GET', '/why/unheard-of')).toMatchObject({ status: 404, body: { code: 'NO_SUCH_REF' } });
  });

  test('flags and live settings are changed while it runs', async () => {
    expect(await call('PUT', '/flags/batch_approvals', { value: 'disabled' })).toMatchObject({ status: 200 });
    const { body } = await call('GET', '/flags');
    expect(body.items).toContainEqual(expect.objectContaining({ name: 'batch_approvals', value: 'disabled' }));
    await call('PUT', '/flags/batch_approvals', { value: 'default' });
    const path = `/config/live/${encodeURIComponent('lock:max_ttl')}`;
    expect(await call('PUT', path, { value: 100 })).toMatchObject({ status: 200, body: { value: 100 } });
    const held = await acquire({ lock: aLock(), agent: 'long', ttl: 500 });
    const leaseMs = Date.parse(held.body.expires_at!) - Date.parse(held.body.acquired_at!);
    expect(leaseMs).toBe(100_000);
    expect(await call('PUT', path, { value: 'soon' })).toMatchObject({ status: 400 });
    await call('PUT', path, { value: 'default' });
  });

  test('metrics count what is held', async () => {
    await acquire({ lock: aLock(), agent: 'counted' });
    const { body } = await daemon.get('/metrics');
    expect(Number(/reeve_locks_held\{type="resource"\} (\d+)/.exec(body)?.[1])).toBeGreaterThan(0);
    expect(body).toContain('reeve_lock_wait_seconds_count');
    expect(body).toContain('reeve_deadlocks_total');
  });
});

describe('on the command line', () => {
  test('acquire prints lock_id and fencing_token, beat and release take them', async () => {
    const lock = aLock();
    const held = await run(['lock', 'acquire', lock, '--agent', 'ann', '--json']);
    expect(held.code).toBe(0);
    const { lock_id, fencing_token } = onlyObject(held);
    expect(fencing_token).toEqual(expect.any(Number));
    const mine = ['--agent', 'ann', '--lock-id', String(lock_id)];
    expect(await run(['lock', 'beat', lock, ...mine])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok /),
    });
    expect(await run(['lock', 'release', lock, ...mine])).toMatchObject({ code: 0 });
    const again = await run(['lock', 'acquire', lock, '--agent', 'ann']);
    expect(again.stdout).toMatch(/^ok lock=resource:test:\d+ lock_id=\S+ fencing_token=\d+ until=\S+\n$/);
  });

  test('a taken lock is exit 6, after a wait exit 9, a lost one exit 5; each says what to do', async () => {
    const lock = aLock();
    await acquire({ lock, agent: 'ann', purpose: 'migrating' });
    const taken = await run(['lock', 'acquire', lock, '--agent', 'bob']);
    expect(taken).toMatchObject({ code: 6, stdout: expect.stringMatching(/^held .*by=ann .*fix="reeve lock acquire/) });
    expect(await run(['lock', 'acquire', lock, '--agent', 'bob', '--wait', '0.2'])).toMatchObject({ code: 9 });
    // No place in line is left behind.
    expect((await call('GET', at(lock))).body.waiting).toBe(0);
    const lost = await run(['lock', 'beat', lock, '--agent', 'bob', '--lock-id', 'unheard-of', '--json']);
    expect(lost.code).toBe(5);
    expect(onlyObject(lost)).toMatchObject({ error: { code: 'LOCK_LOST' } });
    const why = await run(['why', lock]);
    expect(why).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/by=ann .*migrating.*fix="reeve lock acquire/),
    });
    expect(await run(['why', 'unheard-of'])).toMatchObject({ code: 3 });
    expect(await run(['lock', 'list', '--agent', 'ann'])).toMatchObject({ stdout: expect.stringContaining(lock) });
    expect(await run(['lock', 'deadlocks'])).toMatchObject({ code: 0 });
  });

  test('acquire waits in line and is served in turn', async () => {
    const lock = aLock();
    const { body: ann } = await acquire({ lock, agent: 'ann' });
    const waiting = run(['lock', 'acquire', lock, '--agent', 'bob', '--wait', '30']);
    await until('bob stands in line', async () => Number((await call('GET', at(lock))).body.waiting) === 1);
    await call('DELETE', `${at(lock)}?agent=ann&lock_id=${ann.lock_id}`);
    const served = await waiting;
    expect(served).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok lock=/) });
    expect(served.stderr, 'whom it waits for is said at once').toContain(`next in line for ${lock}; ann holds it`);
  });

  test('flags and live settings', async () => {
    expect(await run(['flag', 'set', 'deadlock_detection', 'disabled'])).toMatchObject({ code: 0 });
    expect((await run(['flag', 'list'])).stdout).toMatch(/name=deadlock_detection value=disabled source=redis/);
    expect(await run(['flag', 'set', 'deadlock_detection', 'default'])).toMatchObject({ code: 0 });
    expect(await run(['config', 'set', 'lock:default_ttl', '45'])).toMatchObject({ code: 0 });
    expect((await run(['config', 'live'])).stdout).toMatch(/name=lock:default_ttl value=45 source=redis/);
    expect(await run(['config', 'set', 'lock:default_ttl', 'default'])).toMatchObject({ code: 0 });
    expect(await run(['config', 'set', 'lock:default_ttl', '-4'])).toMatchObject({ code: 2 });
  });
});

describe('reeve hold', () => {
  const script = (lock: string, code: string, more: readonly string[] = []) => [
    'hold',
    lock,
    ...more,
    '--',
    process.execPath,
    '-e',
    code,
  ];

  test('passes the exit code of the command, and gives the lock back', async () => {
    const lock = aLock();
    const held = await run(script(lock, 'console.log(process.env.REEVE_FENCING_TOKEN); process.exit(7)'));
    expect(held.code).toBe(7);
    expect(Number(held.stdout)).toBeGreaterThan(0);
    expect((await call('GET', at(lock))).body).toMatchObject({ state: 'free' });
    expect(await run(script(lock, ''))).toMatchObject({ code: 0, stdout: '' });
  });

  test('says like a shell that there is no such command, or that a signal ended it', async () => {
    expect(await run(['hold', aLock(), '--', 'no-such-program'])).toMatchObject({
      code: 127,
      stderr: expect.stringContaining('no-such-program cannot be run: there is no such command'),
    });
    expect(await run(script(aLock(), "process.kill(process.pid, 'SIGKILL')"))).toMatchObject({ code: 128 + 9 });
  });

  test('does not run the command when the lock is taken: exit 6, after a wait exit 9', async () => {
    const lock = aLock();
    await acquire({ lock, agent: 'ann' });
    expect(await run(script(lock, "console.log('ran')"))).toMatchObject({
      code: 6,
      stdout: '',
      stderr: expect.stringContaining(`reeve hold ${lock} --wait 60 -- COMMAND`),
    });
    expect(await run(script(lock, "console.log('ran')", ['--wait', '0.2']))).toMatchObject({ code: 9, stdout: '' });
  });

  test('two at once take turns', async () => {
    const lock = aLock();
    const file = JSON.stringify(join(daemon.cwd, 'turns'));
    const code = `const fs = require('fs'); const n = fs.existsSync(${file}) ? +fs.readFileSync(${file}, 'utf8') : 0;
      setTimeout(() => fs.writeFileSync(${file}, String(n + 1)), 100);`;
    const all = await Promise.all([1, 2, 3].map(() => run(script(lock, code, ['--wait', '30']))));
    expect(all.map(({ code: exit }) => exit)).toEqual([0, 0, 0]);
    expect(await readFile(join(daemon.cwd, 'turns'), 'utf8')).toBe('3');
  });

  const SLEEPER = `console.log(process.pid); setInterval(() => {}, 1000);`;

  test('stops the command when the lock is lost, and exits 5', async () => {
    const lock = aLock();
    let child: ChildProcess | undefined;
    let pid = 0;
    const running = run(script(lock, SLEEPER, ['--ttl', '3']), (started) => {
      child = started;
      started.stdout?.on('data', (chunk) => {
        pid ||= Number(chunk);
      });
    });
    await until('the command runs', () => pid > 0);
    const { body } = await call('GET', at(lock));
    const [holder] = body.holders as unknown as { agent: string; lock_id: string }[];
    await call('DELETE', `${at(lock)}?agent=${holder?.agent}&lock_id=${holder?.lock_id}`);
    const { code, stderr } = await running;
    expect(code).toBe(5);
    expect(stderr).toContain('is not held');
    expect(await isRunning(pid)).toBe(false);
    expect(child?.exitCode).toBe(5);
  });

  test('told to end, it ends the command first and gives the lock back', async () => {
    const lock = aLock();
    let pid = 0;
    const running = run(script(lock, SLEEPER), (started) => {
      started.stdout?.on('data', (chunk) => {
        pid ||= Number(chunk);
        started.kill('SIGTERM');
      });
    });
    expect((await running).code).toBe(128 + 15);
    expect(await isRunning(pid)).toBe(false);
    expect((await call('GET', at(lock))).body).toMatchObject({ state: 'free' });
  });
});
