import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { PAGES } from './docs/pages.ts';

/** Writes every page that is made from a table. test/docs.test.ts finds those that were not written again. */
for (const [path, write] of Object.entries(PAGES)) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, write());
}
