import { existsSync, globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/** Whoever adds one of these must be told where it goes. */
const THINGS = ['key', 'script', 'error', 'event', 'setting', 'operation', 'screen', 'migration', 'test'];

describe('ARCHITECTURE.md', () => {
  const rows = tableUnder('where does it go?', readFileSync('ARCHITECTURE.md', 'utf8'));

  test.each(THINGS)('says where a new %s goes', (thing) => {
    expect(rows.filter(([what = '']) => new RegExp(`\\b${thing}s?\\b`, 'i').test(what))).not.toEqual([]);
  });

  test('names only places that exist', () => {
    const places = rows.flatMap(([, ...cells]) => cells.flatMap(pathsIn));
    expect(places.length).toBeGreaterThanOrEqual(THINGS.length);
    expect(places.filter((place) => !isThere(place))).toEqual([]);
  });

  test.each(['a question', 'an asset', 'a task', 'an event'])('leads through the house with %s', (traveller) => {
    const stations = tableUnder(`journey of ${traveller}`, readFileSync('ARCHITECTURE.md', 'utf8'));
    const places = stations.flatMap((cells) => cells.flatMap(pathsIn));
    expect(places.length).toBeGreaterThanOrEqual(stations.length);
    expect(places.filter((place) => !isThere(place))).toEqual([]);
  });
});

test('a place that does not exist would be found', () => {
  const page =
    '# Map\n\n## Where does it go?\n\n| new | where |\n|---|---|\n| a key | `src/redis/keys.ts`, `src/attic/` |\n\n## Next\n| no | `row` |';
  const rows = tableUnder('where does it go?', page);
  expect(rows).toEqual([['a key', '`src/redis/keys.ts`, `src/attic/`']]);
  expect(pathsIn(rows[0]?.[1] ?? '').filter((place) => !isThere(place))).toEqual(['src/attic/']);
});

/** The cells of the rows of the table under a heading, without its head. */
function tableUnder(heading: string, page: string): string[][] {
  const [, ...sections] = page.split(/^#+ /m);
  const section = sections.find((text) => text.toLowerCase().startsWith(heading)) ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

/** What stands in backticks and looks like a path: `src/redis/keys.ts`, `src/<room>/lua/`. */
const pathsIn = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text).filter((text) => /^[\w.<>*-]+\//.test(text));

/** A name in angle brackets, or a star, stands for any. */
const isThere = (path: string): boolean => {
  const pattern = path.replace(/<[^>]+>|…/g, '*');
  return pattern.includes('*') ? globSync(pattern).length > 0 : existsSync(pattern);
};
