import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newSecret, signedHeaders } from '../../src/deliveries/sign.ts';

const example = 'examples/webhook-receiver.mjs';
const { isGenuine } = (await import(new URL(`../../${example}`, import.meta.url).href)) as {
  isGenuine: (secret: string, headers: Record<string, string>, body: string, now?: number) => boolean;
};

test('the receiver of the guide believes what reeve signs, and nothing else', () => {
  const [secret, body, seconds] = [newSecret(), '{"type":"task:completed"}', 1_800_000_000];
  const now = seconds * 1000;
  const headers = signedHeaders(secret, { id: 'dlv_1', seconds, body });
  expect(isGenuine(secret, headers, body, now)).toBe(true);
  expect(isGenuine(secret, headers, body.replace('completed', 'approved'), now)).toBe(false);
  expect(isGenuine(secret, { ...headers, 'webhook-id': 'dlv_2' }, body, now)).toBe(false);
  expect(isGenuine(newSecret(), headers, body, now)).toBe(false);
  expect(isGenuine(secret, headers, body, now + 301_000)).toBe(false);
  expect(isGenuine(secret, { ...headers, 'webhook-signature': 'v1,short' }, body, now)).toBe(false);
});

test('the guide shows that very function', () => {
  const [source] = /export function isGenuine[\s\S]*?\n}\n/.exec(readFileSync(example, 'utf8')) ?? [''];
  const shown = source.replace('export ', '');
  expect(shown.split('\n').length).toBeLessThanOrEqual(10);
  expect(readFileSync('docs/guides/notifications.md', 'utf8')).toContain(shown);
});
