import { expect, test } from 'vitest';
import { post } from '../../src/deliveries/post.ts';
import { isPrivateAddress } from '../../src/deliveries/private-address.ts';
import { newSecret, signedHeaders } from '../../src/deliveries/sign.ts';
import { aReceiver } from '../support/receiver.ts';

const what = { headers: {}, body: '{}', timeoutMs: 2_000 };

test.each([
  '127.0.0.1',
  '127.9.9.9',
  '10.1.2.3',
  '172.31.0.1',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::',
  'fd00::1',
  'fe80::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '64:ff9b::7f00:1',
])('%s is private', (address) => expect(isPrivateAddress(address)).toBe(true));

test.each(['1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:1.1.1.1'])('%s is not', (address) =>
  expect(isPrivateAddress(address)).toBe(false),
);

test('where that is not wanted, nothing goes to this machine, by whatever name', async () => {
  const receiver = await aReceiver();
  const { port } = new URL(receiver.url);
  for (const host of ['127.0.0.1', 'localhost', '0x7f.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]', '0']) {
    const answer = await post({ ...what, url: `http://${host}:${port}/`, allowsPrivate: false });
    expect([host, answer]).toEqual([
      host,
      { outcome: 'failed', says: 'not sent: it is on this machine or in a private network' },
    ]);
  }
  expect(receiver.received).toEqual([]);
  expect(await post({ ...what, url: receiver.url, allowsPrivate: true })).toEqual({ outcome: 'accepted', status: 200 });
});

test('nothing goes over the internet unencrypted', async () => {
  expect(await post({ ...what, url: 'http://192.0.2.1/', allowsPrivate: true })).toEqual({
    outcome: 'failed',
    says: 'not sent: it is not https',
  });
});

test('of a long answer only the beginning is kept', async () => {
  const receiver = await aReceiver();
  receiver.answer(400, {}, 'x'.repeat(1_000_000));
  const answer = await post({ ...what, url: receiver.url, allowsPrivate: true });
  expect(answer).toEqual({ outcome: 'refused', status: 400, says: 'x'.repeat(500) });
});

test('the signature is over id, time and body, and fits the published example of the specification', () => {
  // From the specification's reference libraries: secret, id, time, body and the signature they give.
  const headers = signedHeaders('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    seconds: 1614265330,
    body: '{"test": 2432232314}',
  });
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
  expect(newSecret()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});
