import { expect, test } from 'vitest';
import { facts, line, table } from '../../src/cli/render.ts';

const HOSTILE = '\u001b[31mred\u001b[0m\u0007 $(rm -rf ~) `id` <script>alert(1)</script>\r\nok task=OTHER\u009b2J';

test('what somebody wrote into a title reaches no terminal as a command, and no line as a second one', () => {
  const row = { task_id: 'A', title: HOSTILE, tags: [HOSTILE] };
  const shown = [...table([row], ['task_id', 'title', 'tags'], 500), line(row), ...facts(row)];
  expect(shown).toHaveLength(2 + 1 + 3);
  for (const text of shown) expect(text).not.toMatch(/\p{Cc}/u);
  expect(line(row)).toContain('title=" [31mred [0m  $(rm -rf ~)');
});
