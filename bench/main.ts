import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { table } from '../src/cli/render.ts';
import { EXIT } from '../src/error-catalogue.ts';
import { BENCHES } from './benches.ts';
import { type Bench, FEWEST_ROUNDS, type Metric } from './harness.ts';
import { describeMachine } from './machine.ts';

const RESULTS = join(import.meta.dirname, 'results');

process.exitCode = await main();

/** npm run bench -- [NAME…] [--json] [--rounds N] */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, rounds: { type: 'string', default: String(FEWEST_ROUNDS) } },
  });
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHES);
  const unknown = names.filter((name) => !(name in BENCHES));
  const rounds = Number(values.rounds);
  if (unknown.length > 0 || !(rounds >= FEWEST_ROUNDS)) {
    const problem =
      unknown.length > 0 ? `there is no bench ${unknown.join(', ')}` : `--rounds must be ${FEWEST_ROUNDS} or more`;
    console.error(`${problem}; there are: ${Object.keys(BENCHES).join(', ')}`);
    return EXIT.usage;
  }
  let missed = false;
  for (const name of names) {
    const bench = await BENCHES[name]!();
    const metrics = await measure(bench, rounds);
    if (values.json) console.log(JSON.stringify({ bench: name, metrics }));
    else show(bench, metrics);
    missed ||= metrics.some(({ ok }) => !ok);
  }
  return missed ? EXIT.differs : EXIT.ok;
}

async function measure({ name, run }: Bench, rounds: number): Promise<readonly Metric[]> {
  const note = (text: string) => process.stderr.isTTY && process.stderr.write(`\r\u001b[K${name}: ${text}`);
  const metrics = await run({ rounds, note });
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  mkdirSync(RESULTS, { recursive: true });
  const kept = { bench: name, at: new Date().toISOString(), rounds, machine: await describeMachine(), metrics };
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(kept, undefined, 2)}\n`);
  return metrics;
}

function show({ name, summary }: Bench, metrics: readonly Metric[]): void {
  const rows = metrics.map(({ name: figure, value, unit, floor, peers, ratio, bar, ok }) => ({
    figure,
    value: `${value} ${unit}`,
    floor: floor ?? '',
    peers: Object.entries(peers ?? {})
      .map(([peer, theirs]) => `${peer} ${theirs}`)
      .join(', '),
    ratio: ratio ?? '',
    bar,
    ok: ok ? 'met' : 'MISSED',
  }));
  const columns = ['figure', 'value', 'floor', 'peers', 'ratio', 'bar', 'ok'].filter((column) =>
    rows.some((row) => row[column as keyof typeof row] !== ''),
  );
  console.log(`${styleText('bold', name)}: ${summary}\n`);
  for (const line of table(rows, columns, 160)) console.log(`  ${line}`);
  console.log('');
}
