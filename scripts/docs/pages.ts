import { openApi } from '../../src/http/openapi.ts';
import { operations } from '../../src/operations/index.ts';
import { manifestSchema } from '../../src/registry/manifest-schema.ts';
import { settingsSchema } from '../../src/settings.ts';
import { readVersion } from '../../src/version.ts';
import { cliPage } from './cli.ts';
import { errorsPage } from './errors.ts';
import { eventsPage } from './events.ts';
import { keysPage } from './keys.ts';
import { operationsPage } from './operations.ts';
import { settingsPage } from './settings.ts';

/** Every file that is made from a table, and what makes it. A new page is one line. */
export const PAGES: Readonly<Record<string, () => string>> = {
  'docs/cli.md': cliPage,
  'docs/errors.md': errorsPage,
  'docs/events.md': eventsPage,
  'docs/keys.md': keysPage,
  'docs/operations.md': operationsPage,
  'docs/settings.md': settingsPage,
  'schemas/manifest.schema.json': () => json(manifestSchema()),
  'schemas/openapi.json': () => json(openApi(operations, readVersion())),
  'schemas/reeve.schema.json': () => json(settingsSchema()),
};

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;
