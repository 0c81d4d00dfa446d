import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** The tables of what must be withstood name tests: here they are looked for, so that no table tells of a test that is gone. */
const TABLES = ['test/approvals/CASES.md', 'test/coordinator/locks/CASES.md', 'test/coordinator/CASES.md'];

interface Named {
  readonly file: string;
  readonly title: string;
}

/** In the last column: `file` title…; another title of it; `file`, `file`. */
function namedIn(table: string): readonly Named[] {
  const rows = readFileSync(table, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.endsWith('| tried in |'));
  return rows.flatMap((row) => namesOf(row.split('|').at(-2) as string));
}

function namesOf(cell: string): readonly Named[] {
  let file = '';
  return cell.split(/; |, (?=`)/).map((part) => {
    const [, name, title] = /^\s*(?:`([^`]+)`)?(.*)$/.exec(part) as unknown as [string, string | undefined, string];
    file = name ?? file;
    return { file, title: title.trim().replace(/…$/, '') };
  });
}

function pathOf(table: string, file: string): string | undefined {
  const name = file.endsWith('/') ? file : `${file}.test.ts`;
  return [join(dirname(table), name), join('test', name)].find((path) => existsSync(path));
}

function titlesBegin(path: string, title: string): boolean {
  const text = readFileSync(path, 'utf8');
  return [`'${title}`, `\`${title}`].some((quoted) => text.includes(quoted));
}

describe.each(TABLES)('%s', (table) => {
  test('names something in every row', () => {
    expect(namedIn(table).length).toBeGreaterThan(20);
  });

  test.each(namedIn(table))('$file has a test “$title”', ({ file, title }) => {
    const path = pathOf(table, file);
    expect(path, `there is no ${file}`).toBeDefined();
    if (title) expect(titlesBegin(path as string, title), 'no test begins so').toBe(true);
  });
});
