import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/log.ts';
import { createWebhook, type Webhook } from '../../src/sync/webhook.ts';
import { type GithubStandIn, startGithub } from '../support/github.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom, type SyncRoom, sourceOf } from '../support/sync.ts';
import { until } from '../support/until.ts';

const SECRET = "It's a Secret to Everybody";
let redis: TestRedis;
let github: GithubStandIn;
let room: SyncRoom;
let webhook: Webhook;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  github = await startGithub();
  github.repo.commit({ 'prompts/a.yaml': aManifest('a') });
  room = await aSyncRoom(redis, { source: sourceOf(github) });
  await room.run();
  const { sync, connection, keys } = room;
  const main = { name: 'main', repo: github.name, branch: 'main', secrets: [SECRET], keys };
  webhook = createWebhook({ sources: [main], sync, connection, log: silentLog });
});
afterEach(async () => {
  await room[Symbol.asyncDispose]();
  await redis.flush();
  await github[Symbol.asyncDispose]();
});

const deliver = ({ body, headers }: ReturnType<GithubStandIn['delivery']>, more: Record<string, string> = {}) =>
  webhook({ headers: { ...headers, ...more }, body: Buffer.from(body) });
const push = (commit: string, branch = 'main', id?: string) =>
  github.delivery('push', github.push(commit, branch), SECRET, id);
const runs = async () => (await room.sync.runs(50)).filter(({ trigger }) => trigger === 'webhook');

describe('a delivery', () => {
  test('is answered at once, and the push it tells of is synced', async () => {
    const commit = github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    expect(await deliver(push(commit))).toEqual({ status: 202, says: 'accepted', sources: ['main'] });
    await until('the asset of the push', async () => (await room.ids()).includes('b'));
  });

  test("is believed for GitHub's own published example of a signature", async () => {
    const signature = createHmac('sha256', SECRET).update('Hello, World!').digest('hex');
    expect(signature).toBe('757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17');
    const headers = { 'x-hub-signature-256': `sha256=${signature}`, 'content-type': 'application/json' };
    // The signature is good, so it is the body that is complained of.
    await expect(webhook({ headers, body: Buffer.from('Hello, World!') })).rejects.toThrow(
      'its body is not what GitHub sends',
    );
  });

  test.each([
    ['none', undefined],
    ['an older kind', `sha1=${'a'.repeat(40)}`],
    ['capital letters', `sha256=${'A'.repeat(64)}`],
    ['the wrong length', `sha256=${'a'.repeat(63)}`],
    ['a wrong one', `sha256=${'a'.repeat(64)}`],
  ])('is refused when its signature is %s', async (_what, signature) => {
    const { body, headers } = push(github.repo.head());
    const { 'x-hub-signature-256': _right, ...rest } = headers;
    const forged = signature ? { ...rest, 'x-hub-signature-256': signature } : rest;
    await expect(webhook({ headers: forged, body: Buffer.from(body) })).rejects.toMatchObject({
      code: 'WEBHOOK_REFUSED',
    });
  });

  test('is refused when there is no secret, however it is signed', async () => {
    const { sync, connection, keys } = room;
    const open = createWebhook({
      sources: [{ name: 'main', repo: github.name, branch: 'main', secrets: [], keys }],
      sync,
      connection,
      log: silentLog,
    });
    const { body, headers } = github.delivery('push', github.push(github.repo.head()), '');
    await expect(open({ headers, body: Buffer.from(body) })).rejects.toMatchObject({ code: 'WEBHOOK_OFF' });
  });

  test('is believed with the old secret and with the new one while it is being changed, then only with the new', async () => {
    const { sync, connection, keys } = room;
    const withSecrets = (...secrets: string[]) =>
      createWebhook({
        sources: [{ name: 'main', repo: github.name, branch: 'main', secrets, keys }],
        sync,
        connection,
        log: silentLog,
      });
    const signed = (secret: string) => {
      const { body, headers } = github.delivery('ping', { zen: 'Keep it simple' }, secret);
      return { headers, body: Buffer.from(body) };
    };
    const changing = withSecrets('new', SECRET);
    expect(await changing(signed('new'))).toMatchObject({ says: 'pong' });
    expect(await changing(signed(SECRET))).toMatchObject({ says: 'pong' });
    await expect(changing(signed('other'))).rejects.toMatchObject({ code: 'WEBHOOK_REFUSED' });
    const changed = withSecrets('new');
    await expect(changed(signed(SECRET))).rejects.toMatchObject({ code: 'WEBHOOK_REFUSED' });
  });

  test('is refused as a form, and when it names a source that is not there', async () => {
    await expect(
      deliver(push('a'.repeat(40)), { 'content-type': 'application/x-www-form-urlencoded' }),
    ).rejects.toMatchObject({ code: 'WEBHOOK_REFUSED' });
    const { body, headers } = push('a'.repeat(40));
    await expect(webhook({ source: 'nobody', headers, body: Buffer.from(body) })).rejects.toMatchObject({
      code: 'NO_SUCH_SOURCE',
    });
  });

  test.each([
    ['null', 'null'],
    ['a list', '[]'],
    ['wrong types', '{"ref":1,"repository":{"full_name":2}}'],
    ['no JSON', '{'],
  ])('that is %s is refused, not fallen over', async (_what, body) => {
    const signature = createHmac('sha256', SECRET).update(body).digest('hex');
    const headers = {
      'x-hub-signature-256': `sha256=${signature}`,
      'content-type': 'application/json',
      'x-github-event': 'push',
    };
    await expect(webhook({ headers, body: Buffer.from(body) })).rejects.toMatchObject({ code: 'WEBHOOK_UNREADABLE' });
  });

  test('counts once: sent again after its sync ended well it is only acknowledged', async () => {
    const commit = github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    const delivery = push(commit, 'main', 'guid-1');
    await deliver(delivery);
    await until(
      'the end of its sync',
      async () => (await room.connection.commands.get(room.keys.assetSyncDelivery('guid-1'))) === 'done',
    );
    expect(await deliver(delivery)).toEqual({ status: 200, says: 'seen before', sources: [] });
  });

  test('works again when its sync failed', async () => {
    const commit = github.repo.commit({ 'prompts/b.yaml': aManifest('b') });
    github.fault({ status: 401, body: '{"message":"Bad credentials"}' });
    const delivery = push(commit, 'main', 'guid-2');
    await deliver(delivery);
    await until('the failure', async () => (await runs()).some(({ outcome }) => outcome === 'failed'));
    github.healthy();
    expect(await deliver(delivery)).toMatchObject({ says: 'accepted' });
    await until('the asset', async () => (await room.ids()).includes('b'));
  });

  test.each([
    ['another branch', () => push('b'.repeat(40), 'feature/main')],
    ['a tag', () => github.delivery('push', { ...github.push('b'.repeat(40)), ref: 'refs/tags/main' }, SECRET)],
    [
      'another repository',
      () => github.delivery('push', { ...github.push('b'.repeat(40)), repository: { full_name: 'x/y' } }, SECRET),
    ],
    ['a star', () => github.delivery('star', github.push('b'.repeat(40)), SECRET)],
  ])('of %s is ignored', async (_what, make) => {
    expect(await deliver(make())).toEqual({ status: 202, says: 'ignored', sources: [] });
  });

  test('of a repository that was renamed or hidden is a reason to look', async () => {
    const delivery = github.delivery('repository', { ...github.push(github.repo.head()), action: 'renamed' }, SECRET);
    expect(await deliver(delivery)).toEqual({ status: 202, says: 'accepted', sources: ['main'] });
  });

  test('that deletes the branch does not delete the assets', async () => {
    const deletion = push('0'.repeat(40));
    github.repo.git(['update-ref', '-d', 'refs/heads/main']);
    await deliver(deletion);
    await until('its end', async () => (await runs()).length > 0);
    expect(await room.ids()).toEqual(['a']);
  });

  test('is answered with pong when it is a ping', async () => {
    expect(await deliver(github.delivery('ping', { zen: 'Keep it simple' }, SECRET))).toMatchObject({
      status: 200,
      says: 'pong',
    });
  });
});

test('a hundred pushes at once are a few syncs, and the last one wins', async () => {
  const commits = Array.from({ length: 100 }, (_, at) =>
    at % 20 === 0 ? github.repo.commit({ [`prompts/n${at}.yaml`]: aManifest(`n${at}`) }) : github.repo.head(),
  );
  await Promise.all(commits.map((commit) => deliver(push(commit))));
  await until('the newest asset', async () => (await room.ids()).includes('n80'));
  expect((await runs()).length).toBeLessThanOrEqual(3);
});
