/** One figure, as `--json` prints it and the README shows it. */
export interface Metric {
  readonly name: string;
  /** The median of the rounds. */
  readonly value: number;
  readonly unit: string;
  /** What the cheapest thing that could do the job takes, measured in the same run. */
  readonly floor?: number;
  /** What others take, measured in the same run. */
  readonly peers?: Readonly<Record<string, number>>;
  /** Value by floor, or by the best of the peers where there is no floor. */
  readonly ratio?: number;
  /** What it is held to, in words: 'value <= 1500'. */
  readonly bar: string;
  readonly ok: boolean;
}

export interface Bench {
  readonly name: string;
  /** What it measures, in one line. */
  readonly summary: string;
  readonly run: (surroundings: Surroundings) => Promise<readonly Metric[]>;
}

export interface Surroundings {
  /** At least three; a bench whose single round is quick may take more. */
  readonly rounds: number;
  /** Says what is going on, to whoever waits. */
  readonly note: (text: string) => void;
}

export const FEWEST_ROUNDS = 3;

/**
 * Takes one sample of each candidate per round, in an order that turns from round to round, after a round that does not
 * count. What disturbs the machine meanwhile then disturbs all of them.
 */
export async function interleaved<Name extends string>(
  rounds: number,
  candidates: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Readonly<Record<Name, number[]>>> {
  const names = Object.keys(candidates) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = -1; round < Math.max(rounds, FEWEST_ROUNDS); round++) {
    const first = Math.max(round, 0) % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const sample = await candidates[name]();
      if (round >= 0) samples[name].push(sample);
    }
  }
  return samples;
}

export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

interface Measured {
  readonly name: string;
  readonly unit: string;
  readonly samples: readonly number[];
  readonly floor?: readonly number[];
  readonly peers?: Readonly<Record<string, readonly number[]>>;
  readonly bar: Bar;
}

/** How large, or how small, the value or its ratio may be. */
export type Bar = { readonly of: 'value' | 'ratio' } & ({ readonly atMost: number } | { readonly atLeast: number });

/** Makes a metric of the samples, and judges it. */
export function metric({ name, unit, samples, floor, peers = {}, bar }: Measured): Metric {
  const value = median(samples);
  const others = Object.fromEntries(Object.entries(peers).map(([peer, theirs]) => [peer, round(median(theirs))]));
  const isLess = 'atMost' in bar;
  const best = isLess ? Math.min(...Object.values(others)) : Math.max(...Object.values(others));
  const reference = floor ? median(floor) : Object.keys(others).length > 0 ? best : undefined;
  const ratio = reference === undefined ? undefined : value / reference;
  const judged = (bar.of === 'value' ? value : ratio) ?? Number.NaN;
  return {
    name,
    value: round(value),
    unit,
    ...(floor && { floor: round(median(floor)) }),
    ...(Object.keys(others).length > 0 && { peers: others }),
    ...(ratio !== undefined && { ratio: round(ratio) }),
    bar: isLess ? `${bar.of} <= ${bar.atMost}` : `${bar.of} >= ${bar.atLeast}`,
    // A figure that could not be measured (NaN) has not met its bar.
    ok: isLess ? judged <= bar.atMost : judged >= bar.atLeast,
  };
}

/** Three figures that count: more would pretend to a precision that nothing here has. */
const round = (value: number): number => Number(value.toPrecision(3));
