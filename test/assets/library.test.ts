import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CATEGORIES } from '../../src/registry/category.ts';
import { createManifestParser } from '../../src/registry/manifest.ts';
import { validateFiles } from '../../src/registry/validate.ts';

const run = promisify(execFile);
const root = new URL('../../assets/', import.meta.url).pathname;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'reeve-library-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Calls a Node handler as its manifest says. */
const node = async (tool: string) =>
  ((await import(`${root}tools/${tool}/main.mjs`)) as { run: (input: unknown, config?: unknown) => unknown }).run;

/** Calls a Python handler with its arguments as JSON. */
const python = async (asset: string, args: Readonly<Record<string, unknown>>): Promise<unknown> => {
  const code =
    'import json,sys; sys.dont_write_bytecode=True; sys.path.insert(0,sys.argv[1]); import main; print(json.dumps(main.run(**json.loads(sys.argv[2]))))';
  const { stdout } = await run('python3', ['-c', code, join(root, asset), JSON.stringify(args)]);
  return JSON.parse(stdout);
};

test('every manifest of the library is valid, has its entry file, and no two share an id', async () => {
  const { assets, findings } = await validateFiles([root], root);
  expect(findings).toEqual([]);
  expect(assets).toBeGreaterThanOrEqual(12);
});

test('the library has all three categories', async () => {
  const { glob, readFile } = await import('node:fs/promises');
  const parse = createManifestParser();
  const found = new Set<string>();
  for await (const path of glob('**/manifest.yaml', { cwd: root })) {
    const parsed = parse({ path, sha: '0'.repeat(40), bytes: await readFile(join(root, path)) });
    if (parsed.outcome === 'ok') found.add(parsed.asset.category);
  }
  expect([...found].sort()).toEqual([...CATEGORIES].sort());
});

describe('tools that run', () => {
  test('http_request sends method, body and token, and gives back what was answered', async () => {
    const server = createServer((request, response) => {
      request.on('data', (chunk) => response.end(`${request.method} ${request.headers.authorization} ${chunk}`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const send = await node('http_request');
    const config = { base_url: `http://127.0.0.1:${port}`, token: 'abc' };
    expect(await send({ method: 'POST', url: '/x', body: 'hello' }, config)).toMatchObject({
      status: 200,
      body: 'POST Bearer abc hello',
    });
    await new Promise((resolve) => server.close(resolve));
  });

  test('text_stats counts what people call characters and words', async () => {
    const measure = await node('text_stats');
    expect(measure({ text: 'One two two. Three 👩‍👩‍👧!\n', top: 1 })).toEqual({
      characters: 22,
      words: 4,
      sentences: 2,
      lines: 2,
      reading_seconds: 1,
      frequent: [{ word: 'two', count: 2 }],
    });
    expect(measure({ text: '' })).toMatchObject({ characters: 0, words: 0, lines: 0 });
  });

  test('json_query follows a path over all elements, and reaches nothing that the document does not own', async () => {
    const query = await node('json_query');
    const json = JSON.stringify({ orders: [{ total: 2 }, { total: 3 }, {}] });
    expect(query({ json, path: 'orders[*].total' })).toEqual({ matches: 2, result: [2, 3] });
    expect(query({ json, path: 'orders[*].total', reduce: 'sum' })).toEqual({ matches: 2, result: 5 });
    expect(query({ json, path: 'orders[1]' })).toEqual({ matches: 1, result: [{ total: 3 }] });
    expect(query({ json, path: 'constructor.name' })).toEqual({ matches: 0, result: [] });
  });

  test('date_math adds working days, counts between dates and refuses what is no date', async () => {
    const compute = await node('date_math');
    expect(compute({ from: '2026-11-20', amount: 1, unit: 'working_days' })).toEqual({ date: '2026-11-23' });
    expect(compute({ from: '2026-03-01', amount: -1 })).toEqual({ date: '2026-02-28' });
    expect(compute({ from: '2026-11-16', to: '2026-11-30' })).toEqual({ days: 14, weeks: 2, working_days: 10 });
    expect(() => compute({ from: '2026-02-30' })).toThrow('not a date');
  });

  test('csv_summary tells type, gaps and range of each column', async () => {
    const path = join(dir, 'people.csv');
    await writeFile(path, '\uFEFFname;age\nAnn;30\nBob;\nCy;40\n');
    expect(await python('tools/csv_summary', { path })).toEqual({
      rows: 3,
      columns: [
        { name: 'name', type: 'text', missing: 0, distinct: 3 },
        { name: 'age', type: 'number', missing: 1, distinct: 2, min: 30, max: 40, mean: 35 },
      ],
      sample: expect.arrayContaining([{ name: 'Ann', age: '30' }]),
    });
  });

  test('file_hash hashes a file with an odd name and compares it', async () => {
    const path = join(dir, "o'dd name\\.txt");
    await writeFile(path, 'hello');
    const sha256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
    const ask = async (expected?: string) => {
      const env = { PATH: process.env.PATH, INPUT_PATH: path, ...(expected && { INPUT_EXPECTED: expected }) };
      return JSON.parse((await run('bash', [join(root, 'tools/file_hash/main.sh')], { env })).stdout);
    };
    expect(await ask()).toEqual({ sha256, bytes: 5, matches: null });
    expect(await ask(sha256.toUpperCase())).toMatchObject({ matches: true });
    expect(await ask('0'.repeat(64))).toMatchObject({ matches: false });
  });

  test('git_summary tells branch, changes and commits of a real repository', async () => {
    const repo = join(dir, 'repo');
    const identity = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org'];
    await run('git', ['init', '-q', '-b', 'main', repo]);
    await run('git', ['-C', repo, ...identity, 'commit', '-q', '--allow-empty', '-m', 'Begin']);
    await writeFile(join(repo, 'new.txt'), 'x');
    expect(await python('tools/git_summary', { path: repo })).toEqual({
      branch: 'main',
      changes: [{ state: '??', path: 'new.txt' }],
      commits: [expect.objectContaining({ author: 'Ann', subject: 'Begin' })],
    });
  });

  test('the data_analysis skill gives figures by group and says what it left out', async () => {
    const path = join(dir, 'sales.csv');
    await writeFile(path, 'region,amount\nnorth,10\nsouth,5\nnorth,20\nsouth,none\n');
    expect(await python('skills/data_analysis', { path, column: 'amount', group_by: 'region' })).toMatchObject({
      all: { count: 3, sum: 35, median: 10 },
      groups: { north: { mean: 15 }, south: { count: 1 } },
      skipped: 1,
    });
  });
});
