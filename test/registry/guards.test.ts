import { expect, test } from 'vitest';
import { DEFAULT_GUARDS, isMassDelete, widened } from '../../src/registry/guards.ts';

type Rights = Parameters<typeof widened>[0];
const rights = (language: 'none' | 'python'): Rights => ({ permissions: [], runtime: { language, dependencies: [] } });

test.each<[Rights['permissions'], Rights['permissions'], string[]]>([
  [['a'], ['a', 'b'], ['b']],
  [['a', 'b'], ['a'], []],
  [['a'], { a: true, b: false }, []],
  [{ timeout: 30 }, { timeout: 60 }, ['timeout: 60']],
  [{ timeout: 60 }, { timeout: 30 }, []],
  [{ hosts: ['x'] }, { hosts: ['x', 'y'] }, ['hosts: ["x","y"]']],
  [['network'], { network: { hosts: ['x'] } }, []],
  [{ network: { hosts: ['x'] } }, ['network'], ['network']],
])('from %j to %j is wider by %j', (before, after, more) => {
  expect(widened({ permissions: before }, { permissions: after })).toEqual(more);
});

test('an asset that starts to run code asks for more', () => {
  expect(widened(rights('none'), rights('python'))).toEqual(['runs python']);
  expect(widened(rights('python'), rights('none'))).toEqual([]);
});

test.each([
  [0, 10, false],
  [3, 10, false],
  [4, 10, true],
  [1, 1, true],
  [0, 0, false],
])('deleting %i of %i needs a person: %j', (gone, total, needs) => {
  expect(isMassDelete(gone, total, DEFAULT_GUARDS)).toBe(needs);
  expect(isMassDelete(gone, total, { ...DEFAULT_GUARDS, massDelete: false })).toBe(false);
});
