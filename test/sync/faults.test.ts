import nock from 'nock';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { DEFAULT_GUARDS } from '../../src/registry/guards.ts';
import { githubClient } from '../../src/sync/github-client.ts';
import { faultOf, retryAfter } from '../../src/sync/github-faults.ts';
import { githubSource } from '../../src/sync/github-source.ts';
import { pauseMs, stateOf } from '../../src/sync/source-state.ts';
import { type Fault, type GithubStandIn, startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, sourceOf } from '../support/sync.ts';
import { until } from '../support/until.ts';

/** Retries wait, but not in tests. */
const hurried: Clock = { now: () => systemClock.now(), sleep: async () => {} };

describe('an answer that is none of the good ones', () => {
  const answer = (status: number, headers: Record<string, string> = {}, message = '') =>
    faultOf({ source: 'x', status, headers, message, now: Date.parse('2026-01-01T00:00:00Z') });
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT';

  test.each([
    ['the hour is used up', 403, { date, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1767225660' }, '', 61],
    ['a wait in seconds', 429, { 'retry-after': '30' }, '', 30],
    ['a wait until a date', 403, { date, 'retry-after': 'Thu, 01 Jan 2026 00:02:00 GMT' }, '', 120],
    ['a limit without a wait', 403, {}, 'You have exceeded a secondary rate limit', 60],
    ['a wait in the past', 429, { 'retry-after': '-5' }, '', 1],
    ['a wait of a year', 429, { 'retry-after': '31536000' }, '', 7200],
    ['a reset in the past', 403, { date, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' }, '', 1],
  ])('is a limit: %s', (_what, status, headers, message, retryAfterSeconds) => {
    expect(answer(status, headers, message)).toMatchObject({
      code: 'SOURCE_RATE_LIMITED',
      details: { retryAfterSeconds },
    });
  });

  test.each([
    [401, 'SOURCE_UNAUTHORIZED', 'refused'],
    [403, 'SOURCE_FORBIDDEN', 'refused'],
    [404, 'SOURCE_MISSING', 'missing'],
    [409, 'SOURCE_EMPTY', 'empty'],
    [422, 'SOURCE_MISSING', 'missing'],
    [500, 'SOURCE_UNREACHABLE', 'unreachable'],
    [502, 'SOURCE_UNREACHABLE', 'unreachable'],
  ] as const)('of status %i is %s, and its source is %s', (status, code, state) => {
    expect(answer(status, {}, 'Bad credentials')).toMatchObject({ code });
    expect(stateOf(code)).toBe(state);
  });

  test('says how long in both of the forms that HTTP knows', () => {
    expect(retryAfter('120', 0)).toBe(120);
    expect(retryAfter('Thu, 01 Jan 1970 00:01:00 GMT', 0)).toBe(60);
    expect(retryAfter('soon', 0)).toBeUndefined();
  });
});

describe('the pace of a source', () => {
  const random = () => 0.5;
  test('is the schedule while it is well, and longer with each failure', () => {
    expect(pauseMs({ state: 'idle', failures: 0, scheduledMs: 60_000, random })).toBe(60_000);
    const pauses = [1, 2, 3, 20].map((failures) =>
      pauseMs({ state: 'unreachable', failures, scheduledMs: 60_000, random }),
    );
    expect(pauses).toEqual([15_000, 30_000, 60_000, 900_000]);
  });
  test('is never shorter than the source asked for', () => {
    expect(pauseMs({ state: 'waiting', failures: 1, retryAfterSeconds: 1_800, scheduledMs: 1, random })).toBe(
      1_800_000,
    );
    expect(pauseMs({ state: 'waiting', failures: 5, retryAfterSeconds: 1, scheduledMs: 1, random })).toBe(960_000);
  });
});

describe('a sync that meets trouble', () => {
  let redis: TestRedis;
  let github: GithubStandIn;
  let room: SyncRoom;
  beforeAll(async () => {
    redis = await startTestRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    github = await startGithub();
    room = await aSyncRoom(redis, { source: sourceOf(github, { clock: hurried, timeoutMs: 4_000 }) });
    github.repo.commit({ 'prompts/a.yaml': aManifest('a'), 'prompts/b.yaml': aManifest('b') });
    await room.run();
    github.repo.commit({ 'prompts/a.yaml': undefined, 'prompts/c.yaml': aManifest('c') });
    github.seen.splice(0);
  });
  afterEach(async () => {
    await room[Symbol.asyncDispose]();
    await redis.flush();
    await github[Symbol.asyncDispose]();
  });

  const limited = { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '4102444800' } };
  test.each<[string, Fault, string, string]>([
    ['a refused token', { status: 401, body: '{"message":"Bad credentials"}' }, 'SOURCE_UNAUTHORIZED', 'refused'],
    [
      'a refused token in the middle',
      { status: 401, body: '{"message":"Bad credentials"}', on: /trees/ },
      'SOURCE_UNAUTHORIZED',
      'refused',
    ],
    ['a missing right', { status: 403, body: '{"message":"Resource not accessible"}' }, 'SOURCE_FORBIDDEN', 'refused'],
    [
      'a repository that is gone or private',
      { status: 404, body: '{"message":"Not Found"}' },
      'SOURCE_MISSING',
      'missing',
    ],
    ['an outage', { status: 503, body: '<html>' }, 'SOURCE_UNREACHABLE', 'unreachable'],
    ['a used-up hour before the blobs', { ...limited, on: /graphql/ }, 'SOURCE_RATE_LIMITED', 'waiting'],
    ['too much at once', { status: 429, headers: { 'retry-after': '77' } }, 'SOURCE_RATE_LIMITED', 'waiting'],
    ['a torn tree', { tearAfter: 100, on: /trees/ }, 'SOURCE_UNREACHABLE', 'unreachable'],
    [
      'a page of a proxy instead of an answer',
      { status: 200, body: '<html>log in</html>', on: /trees/ },
      'SOURCE_UNREACHABLE',
      'unreachable',
    ],
    [
      'a page of a proxy instead of a commit',
      { status: 200, body: '<html>log in</html>', on: /commits/ },
      'SOURCE_UNREACHABLE',
      'unreachable',
    ],
    ['silence', { silence: true, on: /commits/ }, 'SOURCE_UNREACHABLE', 'unreachable'],
    [
      'a limit inside a good GraphQL answer',
      { status: 200, body: '{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}', on: /graphql/ },
      'SOURCE_RATE_LIMITED',
      'waiting',
    ],
  ])('(%s) changes nothing, names it, and is well when the trouble is over', async (_what, fault, code, state) => {
    github.fault(fault);
    expect(await room.run()).toMatchObject({ outcome: 'failed', problem: { code } });
    expect(await room.ids()).toEqual(['a', 'b']);
    expect(await room.registry.state()).toMatchObject({ sync_status: 'failed' });
    const [source] = await room.sync.status();
    expect(source).toMatchObject({ state, failures: 1, problem: { code, next: expect.stringMatching(/./) } });

    github.healthy();
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    expect(await room.ids()).toEqual(['b', 'c']);
    expect((await room.sync.status())[0]).toMatchObject({ state: 'idle', failures: 0 });
    expect(await room.registry.state()).toMatchObject({ sync_status: 'idle' });
  });

  test('gets over hiccups by asking again', async () => {
    github.fault({ status: 502, times: 1, on: /trees/ });
    github.fault({ tearAfter: 3, times: 1, on: /commits/ });
    expect(await room.run()).toMatchObject({ outcome: 'published' });
  });

  test('halves a batch that fails, and gets what fails alone by itself', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 8 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)]),
    );
    github.repo.commit(files);
    github.fault({ status: 502, times: 3, on: /graphql/ });
    const broken = github.repo.git(['rev-parse', 'main:prompts/p3.yaml']);
    github.now.brokenBlobs.add(broken);
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 9 } });
    expect(github.seen.some(({ path }) => path.endsWith(`/git/blobs/${broken}`))).toBe(true);
  });

  test('goes on where it stopped: what was fetched before the limit is not fetched again', async () => {
    github.healthy();
    github.repo.commit(
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`prompts/p${at}.yaml`, aManifest(`p${at}`)])),
    );
    github.fault({ ...limited, on: /graphql/, after: 1 });
    expect(await room.run()).toMatchObject({ outcome: 'failed', problem: { code: 'SOURCE_RATE_LIMITED' } });
    const shas = github.repo
      .git(['ls-tree', '-r', 'main', '--format=%(objectname)', 'prompts'])
      .split('\n')
      .filter(Boolean);
    expect((await room.registry.blobs.has(shas)).size).toBeGreaterThanOrEqual(25);
    github.healthy();
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { bad: 0 } });
  });

  test('walks the folders of a tree that GitHub cuts short, and deletes nothing by mistake', async () => {
    github.now.treeLimit = 2;
    expect(await room.run()).toMatchObject({ outcome: 'published', counts: { added: 1, removed: 1 } });
    expect(await room.ids()).toEqual(['b', 'c']);
  });

  test('follows a renamed repository, and refuses one that somebody else has put in its place', async () => {
    github.now.movedTo = 'acme/renamed';
    github.repo.commit({ 'README.md': 'moved' });
    expect(await room.run()).toMatchObject({ outcome: 'published' });
    github.now.movedTo = undefined;
    github.now.id = 666;
    github.repo.commit({ 'prompts/evil.yaml': aManifest('evil') });
    expect(await room.run()).toMatchObject({ outcome: 'failed', problem: { code: 'SOURCE_REPLACED' } });
    expect(await room.ids()).not.toContain('evil');
    expect((await room.sync.status())[0]).toMatchObject({ state: 'replaced' });
    expect(await room.run({ full: true, acceptSource: true })).toMatchObject({ outcome: 'published' });
    expect(await room.ids()).toContain('evil');
    expect(await room.run()).toMatchObject({ outcome: 'unchanged' });
  });

  test('waits for a commit that a webhook told of and GitHub does not show yet', async () => {
    await room.run();
    const before = github.repo.head();
    github.now.lag = before;
    const after = github.repo.commit({ 'prompts/late.yaml': aManifest('late') });
    const ticket = room.sync.ask('main', { trigger: 'webhook', barrier: after })[0]!;
    const stop = room.sync.listen(() => {
      if (github.seen.filter(({ status }) => status === 304).length >= 2) github.now.lag = undefined;
    });
    expect(await ticket.done).toMatchObject({ outcome: 'published', commit: after });
    stop();
  });

  test('goes on to the commit of the webhook when GitHub shows one before it first', async () => {
    await room.run();
    const between = github.repo.commit({ 'prompts/between.yaml': aManifest('between') });
    const after = github.repo.commit({ 'prompts/late.yaml': aManifest('late') });
    github.now.lag = between;
    const stop = room.sync.listen((news) => {
      if (news.kind === 'ended' && news.run.commit === between) github.now.lag = undefined;
    });
    const first = room.sync.ask('main', { trigger: 'webhook', barrier: after })[0]!;
    expect(await first.done).toMatchObject({ outcome: 'published', commit: between });
    await until('the commit of the webhook', async () => (await room.registry.state()).last_commit_sha === after);
    stop();
  });

  test('asks once after an old delivery that was sent again: the branch is past its commit', async () => {
    const old = github.repo.head();
    github.repo.commit({ 'prompts/newest.yaml': aManifest('newest') });
    await room.run();
    github.seen.splice(0);
    const run = await room.sync.ask('main', { trigger: 'webhook', barrier: old })[0]!.done;
    expect(run).toMatchObject({ outcome: 'unchanged', commit: github.repo.head() });
    expect(github.seen.map(({ status }) => status)).toEqual([304, 200]);
  });

  test('a comparison that fails although the commit is there is no rewritten history', async () => {
    await room.run();
    github.repo.commit({ 'prompts/next.yaml': aManifest('next') });
    github.now.failsToCompare = true;
    await using strict = await aSyncRoom(redis, {
      source: sourceOf(github, { clock: hurried }),
      guards: DEFAULT_GUARDS,
    });
    expect(await strict.run()).toMatchObject({ outcome: 'published' });
  });

  test('takes a source that was never there for what it is', async () => {
    const lost = githubSource({
      client: githubClient({
        apiUrl: github.url,
        login: { token: github.token },
        source: 'x/y',
        fetch,
        clock: hurried,
      }),
      repo: 'x/y',
      address: 'x/y',
    });
    await expect(lost.head({ signal: AbortSignal.timeout(5_000) })).rejects.toMatchObject({ code: 'SOURCE_MISSING' });
  });
});

describe('single calls', () => {
  let signal: AbortSignal;
  beforeEach(() => {
    signal = AbortSignal.timeout(10_000);
  });
  const client = (login = { token: 't' }) =>
    githubClient({
      apiUrl: 'https://api.example.com/api/v3',
      login,
      source: 'x',
      fetch: globalThis.fetch,
      clock: hurried,
    });
  beforeAll(() => nock.disableNetConnect());
  afterAll(() => {
    nock.cleanAll();
    nock.enableNetConnect();
    nock.restore();
  });

  test('offers the known commit as a quoted entity tag and takes 304 for unchanged', async () => {
    const sha = 'a'.repeat(40);
    nock('https://api.example.com', {
      reqheaders: { 'if-none-match': `"${sha}"`, accept: 'application/vnd.github.sha' },
    })
      .get('/api/v3/repos/o/r/commits/heads%2Fmain')
      .reply(304);
    const source = githubSource({ client: client(), repo: 'o/r', branch: 'main', address: 'o/r' });
    expect(await source.head({ known: sha, signal })).toEqual({ outcome: 'unchanged' });
  });

  test('asks the GraphQL address of an Enterprise server', async () => {
    const asked = nock('https://api.example.com')
      .post('/api/graphql')
      .reply(200, { data: { ok: true } });
    expect(await client().graphql('query { ok }', {}, signal)).toEqual({ data: { ok: true }, errors: [] });
    expect(asked.isDone()).toBe(true);
  });

  test('sends no token after a redirect to another host', async () => {
    nock('https://api.example.com')
      .get('/api/v3/repos/o/r/tarball/x')
      .reply(302, '', { location: 'https://elsewhere.example/x' });
    nock('https://elsewhere.example', { badheaders: ['authorization'] })
      .get('/x')
      .reply(200, 'bytes');
    const body = await client().stream('/repos/{owner}/{repo}/tarball/{ref}', {
      params: { owner: 'o', repo: 'r', ref: 'x' },
      signal,
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('bytes');
  });

  test('does not follow a redirect down to plain HTTP', async () => {
    nock('https://api.example.com')
      .get('/api/v3/x')
      .times(3)
      .reply(302, '', { location: 'http://elsewhere.example/x' });
    await expect(client().bytes('/x', { params: {}, signal })).rejects.toMatchObject({ code: 'SOURCE_UNREACHABLE' });
  });

  test('logs in as a GitHub App', async () => {
    const { generateKeyPairSync } = await import('node:crypto');
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    nock('https://api.example.com')
      .post('/api/v3/app/installations/7/access_tokens')
      .reply(201, { token: 'ghs_inst', expires_at: '2099-01-01T00:00:00Z', permissions: {} });
    nock('https://api.example.com', { reqheaders: { authorization: 'token ghs_inst' } })
      .get('/api/v3/x')
      .reply(200, 'ok');
    const app = githubClient({
      apiUrl: 'https://api.example.com/api/v3',
      login: { appId: '1', privateKey, installationId: '7' },
      source: 'x',
      fetch: globalThis.fetch,
      clock: hurried,
    });
    expect(Buffer.from(await app.bytes('/x', { params: {}, signal })).toString()).toBe('ok');
  });
});
