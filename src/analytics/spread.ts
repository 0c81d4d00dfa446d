/** How long something takes, by how many of them are done within it. */
export interface Spread {
  readonly count: number;
  readonly p50_seconds?: number;
  readonly p85_seconds?: number;
  readonly p95_seconds?: number;
}

export function spreadOf(seconds: readonly number[]): Spread {
  const sorted = seconds.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round((sorted[Math.ceil(share * sorted.length) - 1] ?? 0) * 10) / 10;
  if (sorted.length === 0) return { count: 0 };
  return { count: sorted.length, p50_seconds: at(0.5), p85_seconds: at(0.85), p95_seconds: at(0.95) };
}
