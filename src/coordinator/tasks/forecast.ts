/** How fast work gets done, and when it should be done with. */
export interface Forecast {
  /** Completions an hour, lately. */
  readonly rate_per_hour: number;
  /** As likely sooner as later, and safer: of a hundred such projects so many would be done by then. Seconds from now. */
  readonly p50_seconds: number;
  readonly p85_seconds: number;
}

export interface History {
  /** When tasks were completed, in ms, in any order. */
  readonly completions: readonly number[];
  readonly now: number;
}

const LEAST = 5;
const WINDOW_MS = 2 * 3_600_000;
const SLICES = 24;
const RUNS = 400;
/** A project that would take longer at this pace is not forecast: the pace will not last. */
const LONGEST_MS = 90 * 86_400_000;

/**
 * What the recent past says about the rest. The time since the first completion that still counts is cut into slices; a
 * run draws slices, with what was done in each, until the rest is done. Idle slices count like busy ones, so that work
 * that comes in bursts gives a wide range. Undefined: too little has happened to say anything.
 */
export function forecast({ completions, now: here }: History, remaining: number): Forecast | undefined {
  // They are stamped by another clock, which may be ahead.
  const now = completions.reduce((latest, at) => Math.max(latest, at), here);
  const recent = completions.filter((at) => at > now - WINDOW_MS);
  if (recent.length < LEAST) return undefined;
  const first = Math.min(...recent);
  // The first only says when it began.
  const counted = recent.length - 1;
  const sliceMs = Math.max(now - first, 1_000) / SLICES;
  const done = new Array<number>(SLICES).fill(0);
  for (const at of recent) if (at > first) done[Math.min(SLICES - 1, Math.floor((at - first) / sliceMs))]! += 1;
  // Several at the very first moment: there is no time to measure them by.
  if (done.every((count) => count === 0)) return undefined;
  const rate_per_hour = (counted / (sliceMs * SLICES)) * 3_600_000;
  if ((remaining / rate_per_hour) * 3_600_000 > LONGEST_MS) return undefined;
  const random = dice(remaining);
  const runs = Array.from({ length: RUNS }, () => oneRun(done, remaining, random) * sliceMs).sort((a, b) => a - b);
  const at = (share: number) => Math.round((runs[Math.floor(share * (RUNS - 1))] as number) / 1000);
  return { rate_per_hour: Math.round(rate_per_hour * 10) / 10, p50_seconds: at(0.5), p85_seconds: at(0.85) };
}

/** How many slices a run takes, the last one in part. Long rests are drawn in multiples: their spread is drawn from, too. */
function oneRun(done: readonly number[], remaining: number, random: () => number): number {
  const perSlice = done.reduce((sum, count) => sum + count, 0) / done.length;
  const step = Math.max(1, Math.ceil(remaining / perSlice / 200));
  let left = remaining;
  let slices = 0;
  while (left > 0) {
    const count = (done[Math.floor(random() * done.length)] as number) * step;
    slices += count >= left ? (left / count) * step : step;
    left -= count;
  }
  return slices;
}

/** The same question gets the same answer: a board that flickers says nothing. */
function dice(seed: number): () => number {
  let state = (seed + 0x9e3779b9) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
