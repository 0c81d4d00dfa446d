import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { systemClock } from '../src/clock.ts';
import { createPrdBridge } from '../src/coordinator/prd/bridge.ts';
import { silentLog } from '../src/log.ts';
import { interleaved, type Metric, median, metric, type Surroundings } from './harness.ts';
import { cycle, fill } from './queue-cycles.ts';
import { claimTimes, p99 } from './queue-drain.ts';
import { openQueueRoom, type QueueRoom } from './queue-room.ts';

const FEW = 100;
const MANY = 100_000;
const PROBES = 1_000;
const ROWS = 10_000;

/** Many tasks: what a claim costs among them, and how they get there. */
export async function scaleFigures(surroundings: Surroundings): Promise<Metric[]> {
  return [await crowd(surroundings), await load(surroundings)];
}

async function crowd({ rounds, note }: Surroundings): Promise<Metric> {
  await using few = await openQueueRoom();
  await using many = await openQueueRoom();
  note(`${MANY} ready tasks`);
  await fill(many, MANY);
  await cycle(many, { agent: 'ann' });
  const samples = await interleaved(rounds, {
    few: async () => {
      await fill(few, FEW + PROBES);
      await cycle(few, { agent: 'ann' });
      return p99(await claimTimes(few, PROBES));
    },
    many: async () => p99(await claimTimes(many, PROBES)),
  });
  return metric({
    name: `p99 of a claim with ${MANY} ready (floor: with ${FEW} left at the end)`,
    unit: 'ms',
    samples: samples.many,
    floor: [median(samples.few)],
    bar: { of: 'ratio', atMost: 1.5 },
  });
}

/** From a file to a queue in which everything that can be claimed is. */
async function load({ rounds, note }: Surroundings): Promise<Metric> {
  note(`load of ${ROWS} tasks`);
  await using room = await openQueueRoom();
  const dir = await mkdtemp(join(tmpdir(), 'reeve-bench-'));
  try {
    const path = join(dir, 'prd.db');
    makeFile(path);
    await loadOnce(room, path);
    const written = await commandsOf(room);
    const { floor, reeve } = await interleaved(rounds, {
      floor: () => plainly(room, path, written),
      reeve: () => loadOnce(room, path),
    });
    return metric({
      name: `load of ${ROWS} tasks from prd.db (floor: plain SQL, and the same keys in one pipeline)`,
      unit: 'ms',
      samples: reeve,
      floor,
      bar: { of: 'ratio', atMost: 2 },
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** In the form that most files have: dependencies as JSON in a column. */
function makeFile(path: string): void {
  const database = new Database(path);
  database.exec(`CREATE TABLE tasks (task_id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, category TEXT, epic TEXT,
    priority INTEGER, status TEXT DEFAULT 'pending', depends_on TEXT, files_to_modify TEXT, acceptance_criteria TEXT,
    assigned_agent TEXT, created_at TEXT, updated_at TEXT)`);
  const insert = database.prepare(
    'INSERT INTO tasks (task_id, title, description, category, epic, priority, depends_on, files_to_modify) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  database.transaction(() => {
    for (let n = 0; n < ROWS; n++) {
      const needs = n >= 100 ? [`TASK-${n - 100}`, `TASK-${n - 99}`] : [];
      const files = [`src/part-${n}/form.ts`];
      insert.run(
        `TASK-${n}`,
        `Form ${n}`,
        'With a field for each',
        'task',
        'forms',
        5,
        JSON.stringify(needs),
        JSON.stringify(files),
      );
    }
  })();
  database.close();
}

async function loadOnce(room: QueueRoom, path: string): Promise<number> {
  await room.redis.flushdb();
  const bridge = createPrdBridge({ path, sink: room.tasks, clock: systemClock, log: silentLog });
  const began = performance.now();
  await bridge.pullOnce();
  const took = performance.now() - began;
  await bridge.stop();
  if ((await room.tasks.size()) !== ROWS) throw new Error('not all tasks were loaded');
  return took;
}

async function plainly(room: QueueRoom, path: string, commands: string[][]): Promise<number> {
  await room.redis.flushdb();
  const began = performance.now();
  const database = new Database(path, { readonly: true });
  const rows = database.prepare('SELECT * FROM tasks').all();
  database.close();
  await room.redis.pipeline(commands).exec();
  if (rows.length !== ROWS) throw new Error('not all rows were read');
  return performance.now() - began;
}

/** One command for each key that is there now, and one for its end. */
async function commandsOf({ redis }: QueueRoom): Promise<string[][]> {
  const commands: string[][] = [];
  for await (const keys of redis.scanStream({ count: 1_000 })) {
    for (const key of keys as string[]) {
      const type = await redis.type(key);
      if (type === 'string') commands.push(['set', key, (await redis.get(key)) ?? '']);
      else if (type === 'hash') commands.push(['hset', key, ...Object.entries(await redis.hgetall(key)).flat()]);
      else if (type === 'set') commands.push(['sadd', key, ...(await redis.smembers(key))]);
      else if (type === 'list') commands.push(['rpush', key, ...(await redis.lrange(key, 0, -1))]);
      else if (type === 'zset') {
        const flat = await redis.zrange(key, '0', '-1', 'WITHSCORES');
        commands.push(['zadd', key, ...flat.flatMap((member, at) => (at % 2 === 0 ? [flat[at + 1]!, member] : []))]);
      } else for (const [, fields] of await redis.xrange(key, '-', '+')) commands.push(['xadd', key, '*', ...fields]);
      const ends = await redis.pttl(key);
      if (ends > 0) commands.push(['pexpire', key, String(ends)]);
    }
  }
  return commands;
}
