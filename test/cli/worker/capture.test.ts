import { expect, test } from 'vitest';
import { Capture } from '../../../src/cli/worker/capture.ts';
import { prefixed } from '../../../src/cli/worker/prefixed.ts';

const SIZES = { headBytes: 10, tailBytes: 10 };

test('an output that fits is kept as it is', () => {
  const capture = new Capture(SIZES);
  for (const part of ['0123456', '789abcd', 'efghij']) capture.add(Buffer.from(part));
  expect(capture.taken()).toMatchObject({ text: '0123456789abcdefghij', bytes: 20, isTruncated: false });
});

test('of a longer one the beginning and the end are kept, and what is missing is counted', () => {
  const capture = new Capture(SIZES);
  capture.add(Buffer.from(`beginning-${'x'.repeat(1000)}`));
  for (const letter of 'abcdefghijklmnop-the-end') capture.add(Buffer.from(letter));
  const { text, bytes, isTruncated } = capture.taken();
  expect(text).toBe('beginning-\n[… 1014 bytes left out …]\nop-the-end');
  expect({ bytes, isTruncated }).toMatchObject({ bytes: 1034, isTruncated: true });
});

test('a cut through a character leaves no half of it', () => {
  const capture = new Capture({ headBytes: 4, tailBytes: 4 });
  capture.add(Buffer.from('äöüÄÖÜß€'.repeat(3)));
  expect(capture.taken().text).not.toContain('\uFFFD');
});

test('fifty megabytes cost no more memory than the part that is kept', () => {
  const capture = new Capture();
  const chunk = Buffer.alloc(64 * 1024, 'y');
  for (let at = 0; at < 800; at++) capture.add(chunk);
  const { text, bytes } = capture.taken();
  expect(bytes).toBe(800 * 64 * 1024);
  expect(text.length).toBeLessThan(33_000);
});

test('each line is marked with its origin, and a line is never passed on in halves', async () => {
  const written: string[] = [];
  const lines = prefixed('T-1 | ', (text) => void written.push(text));
  await lines.add(Buffer.from('one\ntw'));
  await lines.add(Buffer.from('o\n\nlast'));
  expect(written.join('')).toBe('T-1 | one\nT-1 | two\nT-1 | \n');
  await lines.end();
  expect(written.join('')).toBe('T-1 | one\nT-1 | two\nT-1 | \nT-1 | last\n');
});

test('a character that comes in two pieces arrives whole, and a line that never ends is broken', async () => {
  const written: string[] = [];
  const lines = prefixed('> ', (text) => void written.push(text));
  const euro = Buffer.from('€');
  await lines.add(euro.subarray(0, 1));
  await lines.add(euro.subarray(1));
  await lines.add(Buffer.alloc(40_000, 'z'));
  expect(written.join('')).toBe(`> €${'z'.repeat(40_000)}\n`);
});
