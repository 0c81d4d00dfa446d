import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { githubClient } from '../../src/sync/github-client.ts';
import { repairDeliveriesOnce } from '../../src/sync/missed-deliveries.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';

let github: GithubStandIn;
beforeEach(async () => {
  github = await startGithub();
  github.now.hooks = [
    { id: 1, url: 'https://ci.example.com/hook' },
    { id: 2, url: 'https://reeve.example.com/webhook/github', active: false },
    { id: 77, url: 'https://reeve.example.com/webhook/github/main?x=1' },
  ];
});
afterEach(() => github[Symbol.asyncDispose]());

const HOUR = 3_600_000;
const repair = (more: { hookId?: number; token?: string } = {}) => {
  const { token = github.token, hookId } = more;
  const client = githubClient({ apiUrl: github.url, login: { token }, source: 'it', fetch, clock: systemClock });
  const options = { source: 'main', repo: github.name, client, hookId, clock: systemClock, log: silentLog };
  return repairDeliveriesOnce(options, AbortSignal.timeout(10_000));
};
const sent = (guid: string, status: number, hoursAgo: number, id = `${1_000_000 - hoursAgo}`, event = 'push') =>
  github.now.deliveries.push({ id, guid, status, at: systemClock.now() - hoursAgo * HOUR, event });
const asked = () => github.seen.filter(({ method }) => method === 'POST').map(({ path }) => path.split('/').at(-2));

test('asks again for what never arrived, and for nothing else', async () => {
  // An id that a number of JavaScript would round.
  sent('lost', 502, 1, '9007199254740993123');
  sent('arrived', 202, 2);
  sent('came-later', 200, 3);
  sent('came-later', 500, 4);
  sent('star', 500, 5, '44', 'star');
  sent('hopeless', 401, 6, '54');
  for (const hours of [7, 8, 9]) sent('hopeless', 401, hours);
  sent('long-ago', 500, 80, '99');
  expect(await repair()).toEqual({ outcome: 'looked', deliveries: 9, missed: 2, asked: 1 });
  expect(asked()).toEqual(['9007199254740993123']);
  expect(github.seen[0]?.path).toContain('/hooks?');
  expect(github.seen[1]?.path).toContain('/hooks/77/deliveries');

  expect(await repair()).toMatchObject({ missed: 1, asked: 0 });
});

test('looks through further pages by their cursor, never by their link', async () => {
  for (let at = 0; at < 150; at++) sent(`good-${at}`, 202, 1, String(10_000 - at));
  sent('lost', 500, 2, '5');
  // The stand-in's link leads to another host; it fails the test if a token arrives there.
  expect(await repair({ hookId: 77 })).toEqual({ outcome: 'looked', deliveries: 151, missed: 1, asked: 1 });
  expect(asked()).toEqual(['5']);
  expect(github.seen.every(({ host }) => host === 'api')).toBe(true);
});

test('does without where the token may not see webhooks, or none leads here', async () => {
  github.now.hooks = [{ id: 1, url: 'https://ci.example.com/hook' }];
  expect(await repair()).toMatchObject({ outcome: 'unseen', why: expect.stringContaining('no webhook') });
  github.now.hooks = undefined;
  expect(await repair()).toMatchObject({ outcome: 'unseen' });
  github.fault({ status: 403, body: '{"message":"Resource not accessible by personal access token"}' });
  expect(await repair({ hookId: 77 })).toMatchObject({ outcome: 'unseen' });
});

test('a limit or an outage is not taken for a missing right', async () => {
  github.fault({ status: 429, headers: { 'retry-after': '30' } });
  await expect(repair()).rejects.toMatchObject({ code: 'SOURCE_RATE_LIMITED' });
});
