import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVENTS, type EventName, STREAM_NAMES } from '../../src/events/catalogue.ts';
import { decodeEntry, encodeFields } from '../../src/events/entry.ts';

const NAMES = Object.keys(EVENTS) as EventName[];
const flat = (fields: Readonly<Record<string, string>>) => Object.entries(fields).flat();

describe('an event', () => {
  test('is read as it was written, whatever the form of its stream', () => {
    const word = fc.string({ minLength: 1 });
    const facts = fc.record({ task_id: word, agent_id: word, lock: word, id: word, commit: word });
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), facts, (event, payload) => {
        const { stream } = EVENTS[event];
        const fields = {
          timestamp: '2026-01-02T03:04:05.000006Z',
          source: 'here',
          ...encodeFields(stream, event, payload),
        };
        const read = decodeEntry(stream, '1-0', flat(fields));

        expect(read).toMatchObject({
          stream,
          id: '1-0',
          event,
          at: '2026-01-02T03:04:05.000006Z',
          source: 'here',
          payload,
        });
      }),
    );
  });

  test('of a sync is named by what was done, also when its payload says otherwise', () => {
    const fields = encodeFields('sync', 'asset:added', { op: 'removed', id: 'a', commit: 'c' });

    expect(decodeEntry('sync', '1-0', flat(fields)).event).toBe('asset:added');
  });

  test('of the work stream has the fields of the contract', () => {
    expect(encodeFields('work', 'task_started', { task_id: 'T', agent_id: 'ann' })).toEqual({
      event_type: 'task_started',
      task_id: 'T',
      agent_id: 'ann',
    });
  });
});

describe('an entry of a raw client', () => {
  test('is read whatever it holds', () => {
    const texts = fc.array(
      fc.oneof(fc.string(), fc.constantFrom('event', 'payload', 'timestamp', '__proto__', 'op', 'source')),
    );
    const ids = fc.oneof(
      fc.constant('1-0'),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((ms) => `${ms}-0`),
    );
    fc.assert(
      fc.property(fc.constantFrom(...STREAM_NAMES), ids, texts, (stream, id, fields) => {
        const read = decodeEntry(stream, id, fields);

        expect(read).toEqual({
          stream,
          id,
          event: expect.any(String),
          at: expect.any(String),
          source: expect.any(String),
          payload: expect.any(Object),
        });
        expect(Array.isArray(read.payload)).toBe(false);
      }),
    );
  });

  test.each([
    ['[1,2]', { value: [1, 2] }],
    ['null', { value: null }],
    ['7', { value: 7 }],
    ['{broken', { text: '{broken' }],
    ['{"a":1}', { a: 1 }],
  ])('with the payload %s keeps what it said', (payload, expected) => {
    expect(decodeEntry('lock', '1-0', ['event', 'x', 'payload', payload]).payload).toEqual(expected);
  });

  test('without a time has that of its id', () => {
    expect(decodeEntry('lock', '1700000000000-0', []).at).toBe('2023-11-14T22:13:20.000Z');
    expect(decodeEntry('lock', '18446744073709551615-0', []).at).toBe('unknown');
  });
});
