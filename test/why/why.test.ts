import { expect, test } from 'vitest';
import type { Explainer, Hold } from '../../src/hold.ts';
import { Why } from '../../src/why/why.ts';

const aHold = (subject: string): Hold => ({
  kind: 'lock',
  subject,
  clears_at: null,
  because: `${subject} is held`,
  actions: [
    { label: 'Take it', command: 'reeve take', allowed: false, why_not: 'not yours' },
    { label: 'Wait', command: `reeve wait ${subject}`, allowed: true },
  ],
});

/** Each thing is held by what the table says. */
const explainer =
  (behind: Readonly<Record<string, readonly string[]>>): Explainer =>
  async (ref) => {
    const upstream = behind[ref];
    return upstream && { subject: ref, state: 'held', says: `${ref} is held`, holds: [aHold(ref)], upstream };
  };
const chainOf = async (behind: Readonly<Record<string, readonly string[]>>, ref: string) =>
  (await new Why([explainer(behind)]).explain(ref, 'ann')).chain.map(({ subject }) => subject);

test('follows what stands behind what, nearest first', async () => {
  expect(await chainOf({ a: ['b'], b: ['c'], c: [] }, 'a')).toEqual(['b', 'c']);
});

test('goes around a circle once', async () => {
  expect(await chainOf({ a: ['b'], b: ['a'] }, 'a')).toEqual(['b', 'a']);
});

test('tells six steps and no more', async () => {
  const line = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`s${at}`, [`s${at + 1}`]]));
  expect(await chainOf(line, 's0')).toEqual(['s1', 's2', 's3', 's4', 's5', 's6']);
});

test('asks each room in turn, and says so when none knows the name', async () => {
  const why = new Why([explainer({ a: ['b'] }), explainer({ b: [] })]);
  expect((await why.explain('a', 'ann')).chain).toEqual([{ subject: 'b', says: 'b is held' }]);
  await expect(why.explain('c', 'ann')).rejects.toMatchObject({ code: 'NO_SUCH_REF' });
});
