import { setTimeout as pause } from 'node:timers/promises';
import { type Bench, interleaved, type Metric, metric, type Surroundings } from './harness.ts';
import { cpuSeconds, type MeasuredDaemon, REEVE, residentMib, runtimeOf, startDaemon } from './program.ts';

/** Long enough for the start to be over: what is left then is what it costs to have reeve running. */
const SETTLE_MS = 5_000;
const IDLE_MS = 10_000;
/** A short command takes tens of milliseconds, so its median may rest on more samples. */
const COMMAND_ROUNDS = 5;

/** What it costs to have reeve around: to start it, to keep it, to ask it something. */
export const doors: Bench = {
  name: 'doors',
  summary: 'the daemon from start to ready, at rest, and to its end; a short command against an empty Node',
  run: async (surroundings) => [...(await daemonFigures(surroundings)), ...(await commandFigures(surroundings))],
};

async function daemonFigures({ rounds, note }: Surroundings): Promise<Metric[]> {
  const figures = { ready: [], memory: [], redis: [], cpu: [], stop: [] } as Record<string, number[]>;
  // The first start compiles; every later one finds the compiled code, as on any machine but a new one.
  await (await startDaemon())[Symbol.asyncDispose]();
  for (let round = 1; round <= rounds; round++) {
    note(`daemon, round ${round} of ${rounds}`);
    await using daemon = await startDaemon();
    figures.ready!.push(daemon.readyMs);
    await pause(SETTLE_MS);
    figures.cpu!.push(await idleCpu(daemon));
    figures.memory!.push(await residentMib(daemon.pid));
    figures.redis!.push(await residentMib(daemon.redisPid));
    figures.stop!.push(await daemon.stop());
  }
  const most = (atMost: number) => ({ of: 'value', atMost }) as const;
  return [
    // Redis included, the data directory empty: what a person waits for after the first command.
    metric({ name: 'start to ready', unit: 'ms', samples: figures.ready!, bar: most(1500) }),
    // A second signal is for those who cannot wait a second.
    metric({ name: 'stop to gone', unit: 'ms', samples: figures.stop!, bar: most(1000) }),
    // It must be cheap enough to leave running on the smallest machine: half a gibibyte, one core.
    metric({ name: 'idle memory', unit: 'MiB', samples: figures.memory!, bar: most(160) }),
    metric({ name: 'idle memory of Redis', unit: 'MiB', samples: figures.redis!, bar: most(32) }),
    metric({ name: 'idle processor', unit: '% of a core', samples: figures.cpu!, bar: most(1) }),
  ];
}

/** The daemon and its Redis together, while nobody asks anything. */
async function idleCpu({ pid, redisPid }: MeasuredDaemon): Promise<number> {
  const used = async () => (await cpuSeconds(pid)) + (await cpuSeconds(redisPid));
  const [before, began] = [await used(), performance.now()];
  await pause(IDLE_MS);
  return (((await used()) - before) / ((performance.now() - began) / 1000)) * 100;
}

async function commandFigures({ rounds, note }: Surroundings): Promise<Metric[]> {
  note('commands');
  await using daemon = await startDaemon();
  const { floor, version, status } = await interleaved(rounds * COMMAND_ROUNDS, {
    floor: () => runtimeOf(process.execPath, ['-e', '0'], daemon.cwd),
    version: () => runtimeOf(REEVE, ['--version'], daemon.cwd),
    status: () => runtimeOf(REEVE, ['status'], daemon.cwd),
  });
  const most = (atMost: number) => ({ of: 'ratio', atMost }) as const;
  return [
    metric({ name: 'reeve --version', unit: 'ms', samples: version, floor, bar: most(2) }),
    // Asks the daemon, which asks Redis and the database: an answer before a person notices the wait.
    metric({ name: 'reeve status', unit: 'ms', samples: status, floor, bar: most(4) }),
  ];
}
