import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * Proves that the suite would notice: takes each line marked `-- guard` out of the Lua, one at a time, in a copy of the
 * project, and runs the tests of its room. A removal that no test minds is a promise that nobody keeps; then this fails.
 *
 *     npm run test:guards [-- PART OF A FILE NAME[:LINE]]
 */
interface Guard {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

const CONFIG = 'guards.config.mjs';
/** Files by when they run: nearly always one of the first fails, and the others need not be run at all. */
const SLOWEST = /(model|races|cluster|processes|failover|slot-migration|scale)\.test\.ts$/;
const QUICKEST = /(locks|sweeper|work)\.test\.ts$/;

process.chdir(join(import.meta.dirname, '..'));
const only = process.argv[2] ?? '';
const guards = globSync('src/**/*.lua')
  .flatMap(guardsOf)
  .filter(({ file, line }) => `${file}:${line}`.includes(only));
const copy = makeCopy();
try {
  process.exitCode = run(guards) ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function run(all: readonly Guard[]): boolean {
  const rooms = new Set(all.map(({ file }) => testsOf(file)));
  // Twice, since a machine with other work may let one of them down.
  for (const room of rooms) {
    const files = globSync(`${room}/*.test.ts`);
    if (fails(files) && fails(files, 'inherit')) throw new Error(`${room} fails as it is`);
  }
  const idle = all.filter((guard) => !isMissed(guard));
  console.log(`${all.length - idle.length} of ${all.length} guards are missed when they are gone`);
  return idle.length === 0;
}

function isMissed(guard: Guard): boolean {
  const path = join(copy, guard.file);
  const whole = readFileSync(path, 'utf8');
  writeFileSync(path, without(whole, guard.line));
  const began = performance.now();
  try {
    const by = stagesOf(testsOf(guard.file)).find((files) => fails(files));
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    console.log(`${by ? 'ok  ' : 'MISS'} ${guard.file}:${guard.line} ${guard.text} (${seconds} s)`);
    return by !== undefined;
  } finally {
    writeFileSync(path, whole);
  }
}

function stagesOf(room: string): string[][] {
  const files = globSync(`${room}/*.test.ts`);
  const stage = (file: string) => (QUICKEST.test(file) ? 0 : SLOWEST.test(file) ? 2 : 1);
  return [0, 1, 2].map((n) => files.filter((file) => stage(file) === n));
}

/** Lua lies beside the room it belongs to; tests mirror the rooms. */
function testsOf(lua: string): string {
  return dirname(dirname(lua)).replace(/^src/, 'test');
}

function fails(files: readonly string[], stdio: 'ignore' | 'inherit' = 'ignore'): boolean {
  if (files.length === 0) return false;
  const vitest = join('node_modules', 'vitest', 'vitest.mjs');
  const args = [vitest, 'run', '--config', CONFIG, '--bail', '1', ...files];
  return spawnSync(process.execPath, args, { cwd: copy, stdio, timeout: 300_000 }).status !== 0;
}

function guardsOf(file: string): Guard[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((text, at) => (/-- guard$/.test(text) ? [{ file, line: at + 1, text: text.trim() }] : []));
}

function without(text: string, line: number): string {
  return text
    .split('\n')
    .map((each, at) => (at + 1 === line ? '' : each))
    .join('\n');
}

function makeCopy(): string {
  const to = mkdtempSync(join(tmpdir(), 'reeve-guards-'));
  for (const part of ['src', 'test', 'assets', 'package.json', 'tsconfig.json']) {
    if (existsSync(part)) cpSync(part, join(to, part), { recursive: true });
  }
  symlinkSync(join(process.cwd(), 'node_modules'), join(to, 'node_modules'));
  // Of its own: the suite's also builds what no script needs.
  writeFileSync(
    join(to, CONFIG),
    'export default { test: { testTimeout: 30000, hookTimeout: 60000, maxWorkers: 2 } };\n',
  );
  return to;
}
