import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { makeManifest } from '../src/cli/manifest.ts';
import { operations } from '../src/operations/index.ts';
import {
  anyTypes,
  barrels,
  cycles,
  defaultExports,
  doubleCasts,
  importTimeWork,
  misusedNames,
  type Reserve,
  unreachedLua,
  wrongImports,
  wrongIncludes,
  type Zone,
} from './support/house.ts';
import { parseSource, readSources, type SourceFile } from './support/source.ts';

const BASE = ['events', 'files', 'redis', 'store', 'root'];
const COORDINATION = ['agents', 'locks', 'prd', 'tasks'].map((room) => `coordinator/${room}`);
const ROOMS = [
  ...COORDINATION,
  'analytics',
  'approvals',
  'archive',
  'audit',
  'coordinator',
  'executions',
  'deliveries',
  'identity',
  'jobs',
  'journal',
  'migration',
  'notices',
  'ratelimit',
  'registry',
  'sync',
  'system',
  'webhooks',
  'why',
];

/** Who may import whom: downwards only. A new room is one line here; what it may see is the decision to take. */
const ZONES: readonly Zone[] = [
  { zone: 'run', holds: ['run.ts'], may: ['daemon', 'config', 'root'] },
  {
    zone: 'daemon',
    holds: ['daemon.ts'],
    may: ['config', 'diagnosis', 'composition', 'http', 'mcp', 'metrics', 'operations', ...ROOMS, ...BASE],
  },
  // Parts of the composition that a command without a daemon builds the same way.
  {
    zone: 'composition',
    holds: [
      'approval-rooms.ts',
      'asset-dependency.ts',
      'asset-rooms.ts',
      'execution-rooms.ts',
      'event-rooms.ts',
      'identity-rooms.ts',
      'lock-rooms.ts',
      'redis-medium.ts',
      'standalone.ts',
      'task-rooms.ts',
    ],
    may: [...ROOMS, ...BASE],
  },
  { zone: 'config', holds: ['config.ts'], may: ['root'] },
  // The questions of `reeve doctor`, put together for the daemon and for the command line alike.
  { zone: 'diagnosis', holds: ['diagnosis.ts'], may: [...ROOMS, ...BASE] },

  // Each is a small program of its own where no daemon runs, and composes what it needs.
  {
    zone: 'cli/commands',
    holds: ['cli/commands/'],
    may: ['cli', 'cli/worker', 'run', 'config', 'diagnosis', 'composition', 'mcp', 'operations', ...ROOMS, ...BASE],
  },
  // The agent host keeps its leases as every holder of a lock does.
  { zone: 'cli/worker', holds: ['cli/worker/'], may: ['cli', 'coordinator/locks', 'root'] },
  { zone: 'cli', holds: ['cli/'], may: ['config', 'operations', 'root'], types: ['sync', 'system'] },
  { zone: 'http', holds: ['http/'], may: ['operations', 'identity', 'events', 'root'] },
  { zone: 'mcp', holds: ['mcp/'], may: ['operations', 'events', 'root'] },
  { zone: 'metrics', holds: ['metrics/'], may: ['operations', 'events', 'root'], types: ['sync', 'system'] },

  { zone: 'operations', holds: ['operations/'], may: [...ROOMS, 'events', 'files', 'root'] },

  { zone: 'registry', holds: ['registry/'], may: BASE },
  { zone: 'sync', holds: ['sync/'], may: ['registry', ...BASE] },
  { zone: 'coordinator', holds: ['coordinator/'], may: [...COORDINATION, 'registry', ...BASE] },
  { zone: 'coordinator/agents', holds: ['coordinator/agents/'], may: ['registry', ...BASE] },
  { zone: 'coordinator/locks', holds: ['coordinator/locks/'], may: ['registry', ...BASE] },
  { zone: 'coordinator/prd', holds: ['coordinator/prd/'], may: ['coordinator/tasks', 'audit', ...BASE] },
  {
    zone: 'coordinator/tasks',
    holds: ['coordinator/tasks/'],
    may: ['coordinator/agents', 'coordinator/locks', 'registry', ...BASE],
  },
  { zone: 'audit', holds: ['audit/'], may: BASE },
  // What it changes lies in the store, and its audit rows beside it.
  { zone: 'identity', holds: ['identity/'], may: ['audit', ...BASE] },
  // The gate stands over the tasks: it moves them by fragments of their own, and knows nothing of the doors.
  {
    zone: 'approvals',
    holds: ['approvals/'],
    may: ['audit', 'coordinator/locks', 'coordinator/tasks', ...BASE],
    types: ['system'],
  },
  // What attempts leave: kept with the lease of their task, and with nothing else of it.
  { zone: 'executions', holds: ['executions/'], may: ['coordinator/tasks', 'audit', ...BASE] },
  // What ended is copied as it lies in Redis.
  { zone: 'archive', holds: ['archive/'], may: ['coordinator/tasks', 'audit', ...BASE] },
  { zone: 'jobs', holds: ['jobs/'], may: BASE },
  { zone: 'journal', holds: ['journal/'], may: BASE },
  { zone: 'analytics', holds: ['analytics/'], may: BASE },
  { zone: 'deliveries', holds: ['deliveries/'], may: BASE },
  // Both pack what the deliveries carry, and know nothing of each other.
  { zone: 'notices', holds: ['notices/'], may: ['deliveries', ...BASE] },
  { zone: 'webhooks', holds: ['webhooks/'], may: ['audit', 'deliveries', ...BASE] },
  // Hands what older versions left to the rooms that keep it now.
  { zone: 'migration', holds: ['migration/'], may: ['coordinator/locks', ...BASE] },
  { zone: 'ratelimit', holds: ['ratelimit/'], may: BASE },
  { zone: 'system', holds: ['system/'], may: BASE },
  // Explains a state of affairs, and so reads what all of coordination knows.
  { zone: 'why', holds: ['why/'], may: [...COORDINATION, 'coordinator', 'registry', ...BASE] },

  { zone: 'events', holds: ['events/'], may: ['redis', 'store', 'root'] },
  { zone: 'redis', holds: ['redis/'], may: ['root'] },
  { zone: 'store', holds: ['store/'], may: ['root'] },
  { zone: 'files', holds: ['files/'], may: ['root'] },
  {
    zone: 'root',
    holds: [
      'actor.ts',
      'clock.ts',
      'coerce.ts',
      'config-layers.ts',
      'daemon-file.ts',
      'data-dir.ts',
      'error-catalogue.ts',
      'errors.ts',
      'heap.ts',
      'hold.ts',
      'log.ts',
      'lookout.ts',
      'manifest-globs.ts',
      'mcp-tools.ts',
      'notification-route.ts',
      'reviewer-policy.ts',
      'mcp-tools.ts',
      'schedule.ts',
      'service.ts',
      'settings.ts',
      'systemd.ts',
      'version.ts',
    ],
    may: [],
  },
];

const PROCESS = ['config.ts', 'daemon.ts', 'run.ts', 'cli/main.ts', 'cli/entry.ts'];

/** What belongs to the process or to the machine, and the only files that may touch it. */
const RESERVES: readonly Reserve[] = [
  { names: ['process.env', 'process.exit', 'process.exitCode', 'process.abort'], only: PROCESS },
  { names: ['process.on', 'process.once', 'process.addListener', 'process.prependListener'], only: PROCESS },
  { names: ['Date.now', 'new Date()', 'performance.now', 'setTimeout', 'setInterval'], only: ['clock.ts'] },
  { names: ['import timers/promises'], only: ['clock.ts'] },
  { names: ['import process', 'import timers'], only: [] },
];

const BARRELS = ['operations/index.ts'];
/** The program itself. */
const WORKS_AT_IMPORT = ['cli/entry.ts'];

/** Fragments that belong to the grammar: there for every room, whether or not one includes them yet. */
const OFFERED_LUA = 'redis/lua/';

/** Each rule, and a house that breaks it: what cannot fail proves nothing. */
const RULES: Readonly<Record<string, Rule>> = {
  'imports point downwards': {
    check: (files) => wrongImports(ZONES, files),
    broken: {
      'http/server.ts': `import { mcpServer } from '../mcp/server.ts';`,
      'registry/registry.ts': `import type { Task } from '../coordinator/tasks/task.ts';`,
      'coordinator/locks/locks.ts': `const { Queue } = await import('../tasks/queue.ts');`,
      'redis/script.ts': `import { loadConfig } from '../config.ts';`,
      'clock.ts': `export { EventLog } from './events/event-log.ts';`,
      'metrics/gauges.ts': `import { Readiness } from '../system/readiness.ts';`,
      'errors.ts': `type Loaded = import('./config.ts').Loaded;`,
      'attic/box.ts': `export const empty = true;`,
    },
    says: [
      'attic/box.ts: belongs to no zone',
      'clock.ts:1: root may not import events/event-log.ts (events)',
      'coordinator/locks/locks.ts:1: coordinator/locks may not import coordinator/tasks/queue.ts (coordinator/tasks)',
      'errors.ts:1: root may not import config.ts (config)',
      'http/server.ts:1: http may not import mcp/server.ts (mcp)',
      'metrics/gauges.ts:1: metrics may not import system/readiness.ts (system)',
      'redis/script.ts:1: redis may not import config.ts (config)',
      'registry/registry.ts:1: registry may not import coordinator/tasks/task.ts (coordinator/tasks)',
    ],
  },
  'no file loads itself by way of others': {
    check: cycles,
    broken: {
      'a.ts': `import { b } from './b.ts';`,
      'b.ts': `import type { A } from './a.ts'; import { c } from './c.ts';`,
      'c.ts': `const { b } = await import('./b.ts');`,
    },
    says: ['b.ts > c.ts > b.ts'],
  },
  'there are no barrels': {
    check: (files) => barrels(BARRELS, files),
    broken: {
      'operations/index.ts': `export { one } from './one.ts';`,
      'redis/index.ts': `export const own = 1;`,
      'redis/all.ts': `export { a } from './a.ts'; export type { B } from './b.ts';`,
      'redis/some.ts': `export const own = 1;\nexport * from './a.ts';`,
      'redis/fine.ts': `export const own = 1;\nexport { a } from './a.ts';`,
    },
    says: ['redis/all.ts: is a barrel', 'redis/index.ts: is a barrel', 'redis/some.ts:2: is a barrel'],
  },
  'exports have names': {
    check: defaultExports,
    broken: { 'a.ts': `export default 1;`, 'b.ts': `export default function b() {}`, 'c.ts': `export const c = 1;` },
    says: ['a.ts:1: exports a default', 'b.ts:1: exports a default'],
  },
  'nothing is typed any': {
    check: anyTypes,
    broken: {
      'a.ts': `const a = JSON.parse('1') as any;`,
      'b.ts': `function b(c: any[]) {}`,
      'c.ts': `const any = 1;`,
    },
    says: ['a.ts:1: says any', 'b.ts:1: says any'],
  },
  'no cast goes by way of unknown': {
    check: doubleCasts,
    broken: { 'a.ts': `const a = 1 as unknown as string;`, 'b.ts': `const b = 1 as unknown;` },
    says: ['a.ts:1: casts by unknown'],
  },
  'an import does no work and keeps no state': {
    check: (files) => importTimeWork(WORKS_AT_IMPORT, files),
    broken: {
      'cli/entry.ts': `start();`,
      'a.ts': `let count = 0;`,
      'b.ts': `export var shared = 1;`,
      'c.ts': `start();`,
      'd.ts': `for (const x of y) z(x);`,
      'e.ts': `const fine = 1; export function f() { let count = 0; start(); }`,
    },
    says: [
      'a.ts:1: keeps state in the module',
      'b.ts:1: keeps state in the module',
      'c.ts:1: works at import time',
      'd.ts:1: works at import time',
    ],
  },
  'only the program touches its process, only the clock the time': {
    check: (files) => misusedNames(RESERVES, files),
    broken: {
      'config.ts': `const fine = process.env;`,
      'clock.ts': `const fine = Date.now(); setTimeout(f, 1); const not = process.env.HOME;`,
      'a.ts': `const { env } = process;`,
      'b.ts': `const a = process['env']; const b = globalThis.process?.env?.HOME;`,
      'c.ts': `const stop = process.exit; process.on('SIGTERM', stop); process.exitCode = 1;`,
      'd.ts': `const a = Date.now(); const b = new Date(); const c = new Date(5);`,
      'e.ts': `setTimeout(f, 1);\nglobalThis.setInterval(f, 1);\nperformance.now();`,
      'f.ts': `import { setTimeout as pause } from 'node:timers/promises';\nimport { env } from 'node:process';`,
      'g.ts': `// process.exit() in a comment, and 'Date.now' in a text\nconst fine = 'process.env'; clock.setTimeout(1);`,
      'h.ts': `process.stdin.once('end', f); process.pid; const { now } = clock;`,
    },
    says: [
      'a.ts:1: uses process.env',
      'b.ts:1: uses process.env',
      'b.ts:1: uses process.env',
      'c.ts:1: uses process.exit',
      'c.ts:1: uses process.exitCode',
      'c.ts:1: uses process.on',
      'clock.ts:1: uses process.env',
      'd.ts:1: uses Date.now',
      'd.ts:1: uses new Date()',
      'e.ts:1: uses setTimeout',
      'e.ts:2: uses setInterval',
      'e.ts:3: uses performance.now',
      'f.ts:1: uses import timers/promises',
      'f.ts:2: uses import process',
    ],
  },
};

interface Rule {
  readonly check: (files: readonly SourceFile[]) => string[];
  readonly broken: Readonly<Record<string, string>>;
  readonly says: readonly string[];
}

describe('the house', () => {
  const files = readSources('ts').map(parseSource);
  const scripts = readSources('lua');

  test.each(Object.entries(RULES))('%s', (_, { check }) => {
    expect(check(files)).toEqual([]);
  });

  test.each(Object.entries(RULES))('the rule that %s can fail', (_, { check, broken, says }) => {
    const sources = Object.entries(broken).map(([path, text]) => parseSource({ path, text }));
    expect(check(sources).toSorted()).toEqual(says);
  });

  test('every zone that another names exists', () => {
    const known = new Set(ZONES.map(({ zone }) => zone));
    const named = ZONES.flatMap(({ may, types = [] }) => [...may, ...types]);
    expect(named.filter((zone) => !known.has(zone))).toEqual([]);
  });

  test('Lua fragments are included in the direction of imports', () => {
    expect(wrongIncludes(ZONES, scripts)).toEqual([]);
    const claim = { path: 'coordinator/tasks/lua/claim.lua', text: '-- @include ../../locks/lua/_take.lua' };
    const reverse = { path: 'coordinator/locks/lua/take.lua', text: '-- @include ../../tasks/lua/_claim.lua' };
    expect(wrongIncludes(ZONES, [claim, reverse])).toEqual([
      'coordinator/locks/lua/take.lua: coordinator/locks may not include coordinator/tasks/lua/_claim.lua',
    ]);
  });

  test('every Lua file is reached by a script or is a fragment of one', () => {
    expect(unreachedLua(OFFERED_LUA, files, scripts)).toEqual([]);
    const door = parseSource({
      path: 'a/scripts.ts',
      text: `export const x = defineScript({ file: new URL('./lua/x.lua', import.meta.url) });
        export const z = defineScript({ file: new URL('./lua/z.lua', import.meta.url) });`,
    });
    const lua = ['x', 'y', '_f', '_g'].map((name) => ({ path: `a/lua/${name}.lua`, text: '-- @include _f.lua' }));
    expect(unreachedLua(OFFERED_LUA, [door], lua)).toEqual([
      'a/lua/y.lua: no defineScript names it',
      'a/lua/_g.lua: no script includes it',
      'a/lua/z.lua: named, but not there',
    ]);
  });

  test('every view and local command that is named exists, and every one that exists is named', () => {
    const { commands } = makeManifest(operations, '0.0.0');
    const inUse = (names: readonly (string | undefined)[]) => new Set(names.filter((name) => name !== undefined));
    const present = (folder: string) =>
      new Set(globSync('*.ts', { cwd: `src/cli/${folder}` }).map((file) => file.replace(/\.ts$/, '')));
    expect(inUse(commands.map(({ view }) => view))).toEqual(present('views'));
    expect(inUse(commands.map(({ local }) => local))).toEqual(present('commands'));
  });
});
