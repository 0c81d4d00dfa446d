import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { githubCheck } from '../../../src/system/checks/github.ts';
import { freePort } from '../../support/redis-process.ts';

type Reply = readonly [status: number, body?: unknown, headers?: Record<string, string>];

/** A GitHub of our own: what it answers at each path, and what it was asked. */
async function aGitHub(replies: Readonly<Record<string, Reply>>) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    const [status, body = {}, headers = {}] = replies[request.url ?? ''] ?? [404];
    if (status === 0) return request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { asked, apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const LIMITS: Reply = [200, { resources: { core: { remaining: 4_990, limit: 5_000 } } }, { 'x-oauth-scopes': 'repo' }];
const probe = { clock: systemClock, fetch };

test('a token that works, and a repository that it may read', async () => {
  const { apiUrl, asked } = await aGitHub({ '/rate_limit': LIMITS, '/repos/acme/assets': [200] });
  const findings = await githubCheck({ ...probe, apiUrl: `${apiUrl}/`, repo: 'acme/assets', token: 'secret' }).run();

  expect(findings).toEqual([
    { result: 'ok', says: '4990 of 5000 requests left this hour; scopes: repo' },
    { result: 'ok', says: 'acme/assets can be read' },
  ]);
  expect(asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer secret', 'Bearer secret']);
  expect(JSON.stringify(findings)).not.toContain('secret');
});

test('no token is a small quota', async () => {
  const { apiUrl, asked } = await aGitHub({
    '/rate_limit': [200, { resources: { core: { remaining: 3, limit: 60 } } }],
    '/repos/acme/assets': [200],
  });
  const [quota] = await githubCheck({ ...probe, apiUrl, repo: 'acme/assets' }).run();

  expect(quota).toMatchObject({
    result: 'warn',
    says: expect.stringContaining('3 of 60'),
    fix: expect.stringContaining('GITHUB_TOKEN'),
  });
  expect(asked[0]?.headers.authorization).toBeUndefined();
});

test('a token that GitHub refuses', async () => {
  const { apiUrl } = await aGitHub({ '/rate_limit': [401] });

  expect(await githubCheck({ ...probe, apiUrl, repo: 'acme/assets', token: 'old' }).run()).toMatchObject([
    { result: 'fail', says: 'GitHub refused the token', fix: expect.stringContaining('GITHUB_TOKEN') },
  ]);
});

test('a repository that is not there, or not for this token', async () => {
  const { apiUrl } = await aGitHub({ '/rate_limit': LIMITS });
  const [, repository] = await githubCheck({ ...probe, apiUrl, repo: 'acme/typo', token: 'x' }).run();

  expect(repository).toMatchObject({ result: 'fail', says: 'acme/typo answers 404' });
});

test("a GitHub of one's own without limits", async () => {
  const { apiUrl } = await aGitHub({ '/repos/acme/assets': [200] });

  expect(await githubCheck({ ...probe, apiUrl, repo: 'acme/assets', token: 'x' }).run()).toMatchObject([
    { result: 'ok', says: 'requests are not limited' },
    { result: 'ok' },
  ]);
});

test('a GitHub in trouble', async () => {
  const { apiUrl } = await aGitHub({ '/rate_limit': [502] });

  expect(await githubCheck({ ...probe, apiUrl, repo: 'acme/assets' }).run()).toMatchObject([
    { result: 'fail', says: expect.stringContaining('answers 502') },
  ]);
});

test('a GitHub that is not there, or hangs up', async () => {
  const gone = await githubCheck({ ...probe, apiUrl: `http://127.0.0.1:${await freePort()}`, repo: 'a/b' }).run();
  const { apiUrl } = await aGitHub({ '/rate_limit': LIMITS, '/repos/a/b': [0] });
  const hungUp = await githubCheck({ ...probe, apiUrl, repo: 'a/b' }).run();

  expect(gone).toMatchObject([{ result: 'fail', says: expect.stringContaining('ECONNREFUSED') }]);
  expect(hungUp).toMatchObject([{ result: 'fail', says: expect.stringContaining('does not answer') }]);
});

test('a clock of this machine that is wrong', async () => {
  const { apiUrl } = await aGitHub({ '/rate_limit': LIMITS });
  const clock = { ...systemClock, now: () => systemClock.now() - 120_000 };
  const findings = await githubCheck({ ...probe, clock, apiUrl, token: 'x' }).run();

  expect(findings[1]).toMatchObject({ result: 'warn', says: expect.stringMatching(/1[12]\d s behind/) });
});

test('nothing to ask', async () => {
  expect(await githubCheck({ ...probe, apiUrl: 'http://127.0.0.1:1' }).run()).toMatchObject([{ result: 'skipped' }]);
});
