import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { collide, type ResourceClaim, resourceClaims } from '../../../src/coordinator/tasks/collisions.ts';
import { above, covers, plainPath } from '../../../src/coordinator/tasks/paths.ts';
import type { TaskResource } from '../../../src/coordinator/tasks/task.ts';
import { decodeId, parseId } from '../../../src/redis/ids.ts';

const FILE = parseId('resourceType', 'file');
const DATABASE = parseId('resourceType', 'database');
const write = (...paths: string[]): TaskResource[] => paths.map((id) => ({ type: FILE, id, mode: 'exclusive' }));
const readOnly = (...paths: string[]): TaskResource[] => paths.map((id) => ({ type: FILE, id, mode: 'shared' }));
const doCollide = (one: TaskResource[], other: TaskResource[]) => collide(resourceClaims(one), resourceClaims(other));

describe('two spellings of one path', () => {
  test.each([
    ['src/a.ts', 'src/a.ts'],
    ['./src/a.ts', 'src/a.ts'],
    ['src//a.ts', 'src/a.ts'],
    ['src/b/../a.ts', 'src/a.ts'],
    ['src/auth/', 'src/auth'],
    [' src\\a.ts ', 'src/a.ts'],
    ['.', ''],
    ['./', ''],
    ['../other/x', '../other/x'],
    ['a/../../x', '../x'],
    ['/etc/../etc/hosts', '/etc/hosts'],
    ['/..', '/'],
    ['app/[id]/page.tsx', 'app/[id]/page.tsx'],
    ['cafe\u0301.md', 'caf\u00e9.md'],
  ])('%s is %s', (written, plain) => {
    expect(plainPath(written)).toBe(plain);
    expect(plainPath(plain)).toBe(plain);
  });

  test.each([
    ['src/**/*.ts', 'src'],
    ['src/pages/*.tsx', 'src/pages'],
    ['*.md', ''],
    ['src/{a,b}.ts', 'src'],
  ])('the pattern %s stands for the folder %s', (pattern, folder) => expect(plainPath(pattern)).toBe(folder));

  test('a difference in case alone collides, unless told otherwise', () => {
    expect(doCollide(write('README.md'), write('readme.md'))).toBe(true);
    const strict = (path: string) => resourceClaims(write(path), { foldCase: false });
    expect(collide(strict('README.md'), strict('readme.md'))).toBe(false);
  });
});

describe('collisions', () => {
  test('the same file, a folder and its contents, the top and everything', () => {
    expect(doCollide(write('src/a.ts'), write('src/b.ts'))).toBe(false);
    expect(doCollide(write('src/a.ts'), write('docs/', 'src/a.ts'))).toBe(true);
    expect(doCollide(write('src/'), write('src/deep/down/a.ts'))).toBe(true);
    expect(doCollide(write('src/deep/down/a.ts'), write('src'))).toBe(true);
    expect(doCollide(write('.'), write('anything'))).toBe(true);
  });

  test('a name that begins like a folder is not inside it', () => {
    expect(doCollide(write('src'), write('src2/a.ts'))).toBe(false);
    expect(doCollide(write('src/auth'), write('src/auth.ts'))).toBe(false);
  });

  test('what lies outside the working copy is not covered by its top', () => {
    expect(doCollide(write('.'), write('/etc/hosts'))).toBe(false);
    expect(doCollide(write('.'), write('../sibling/a.ts'))).toBe(false);
    expect(doCollide(write('..'), write('../sibling/a.ts'))).toBe(true);
  });

  test('readers share, also a folder and what is in it; a writer beneath excludes them', () => {
    expect(doCollide(readOnly('src'), readOnly('src/a.ts'))).toBe(false);
    expect(doCollide(readOnly('src'), write('src/a.ts'))).toBe(true);
    expect(doCollide(write('src'), readOnly('src/a.ts'))).toBe(true);
  });

  test('what is no path collides by name alone', () => {
    const database = (id: string): TaskResource[] => [{ type: DATABASE, id, mode: 'exclusive' }];
    expect(doCollide(database('prod'), database('prod'))).toBe(true);
    expect(doCollide(database('prod'), database('prod/replica'))).toBe(false);
    expect(doCollide(database('src'), write('src'))).toBe(false);
  });
});

describe('the locks of a task', () => {
  test('one for each thing, under a name that says what it is', () => {
    const [claim] = resourceClaims(write('src/Feedback/List.ts'));
    expect(claim).toEqual({
      type: 'file',
      id: 'src%2FFeedback%2FList.ts',
      mode: 'exclusive',
      mark: './src/feedback/list.ts/',
      above: ['./', './src/', './src/feedback/'],
    });
    expect(decodeId(claim!.id)).toBe('src/Feedback/List.ts');
  });

  test('a thing declared twice is taken once, and as the stronger', () => {
    expect(resourceClaims([...readOnly('a.ts'), ...write('./a.ts')]).map(({ mode }) => mode)).toEqual(['exclusive']);
    expect(resourceClaims([...write('a.ts'), ...readOnly('a.ts')]).map(({ mode }) => mode)).toEqual(['exclusive']);
  });

  test('a folder makes its contents superfluous, but not when it is only read', () => {
    const names = (resources: TaskResource[]) =>
      resourceClaims(resources).map(({ id, mode }) => `${mode} ${decodeId(id)}`);
    expect(names(write('src', 'src/a.ts'))).toEqual(['exclusive src']);
    expect(names([...readOnly('src'), ...write('src/a.ts')])).toEqual(['shared src', 'exclusive src/a.ts']);
  });

  test('a name with control characters is refused', () => {
    expect(() => resourceClaims(write('a\nb'))).toThrow(/not a valid resource id/);
  });
});

const aPath = fc
  .array(fc.constantFrom('a', 'b', 'ab', '..', '.', ''), { maxLength: 5 })
  .chain((parts) => fc.constantFrom(parts.join('/'), `/${parts.join('/')}`, `${parts.join('/')}/`));
const aResource = fc.record({
  type: fc.constantFrom(FILE, DATABASE),
  id: aPath.map((path) => path || 'x'),
  mode: fc.constantFrom('exclusive', 'shared'),
});

test('a path is covered by all that is above it, and by nothing else but itself', () => {
  fc.assert(
    fc.property(aPath, aPath, (one, other) => {
      const [inner, outer] = [plainPath(one), plainPath(other)];
      expect(covers(outer, inner)).toBe(outer === inner || above(inner).includes(outer));
    }),
  );
});

test('two sorted sets of marks, asked as the claim script asks, find exactly the tasks that collide', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(aResource, { maxLength: 3 }), { maxLength: 6 }),
      fc.array(aResource),
      (held, wanted) => {
        const claims = resourceClaims(wanted);
        const all = held.map((resources) => resourceClaims(resources));
        expect(blockers(claims, all)).toEqual(all.flatMap((other, task) => (collide(claims, other) ? [task] : [])));
      },
    ),
  );
});

/** What ZRANGEBYLEX would answer, on plain arrays. */
function blockers(wanted: readonly ResourceClaim[], held: readonly (readonly ResourceClaim[])[]): number[] {
  const sets = { exclusive: [] as string[], shared: [] as string[] };
  for (const [task, claims] of held.entries()) {
    for (const { mark, mode } of claims) sets[mode].push(`${mark}\0${task}`);
  }
  const range = (set: readonly string[], min: string, max: string) =>
    set.filter((member) => member >= min && member < max);
  const found = wanted.flatMap(({ mark, mode, above }) =>
    [sets.exclusive, ...(mode === 'exclusive' ? [sets.shared] : [])].flatMap((set) => [
      ...range(set, mark, `${mark}\xff`),
      ...above.flatMap((folder) => range(set, `${folder}\0`, `${folder}\x01`)),
    ]),
  );
  return [...new Set(found.map((member) => Number(member.split('\0')[1])))].sort((a, b) => a - b);
}
