/** How long people have, and what happens meanwhile and afterwards. Read anew for each use: all of it is live. */
export interface Terms {
  /** Seconds to answer. */
  readonly timeout: number;
  readonly longest: number;
  /** After which parts of the time people are reminded, rising. */
  readonly reminders: readonly number[];
  /** Who is told of escalations, and asked when nobody else is left; may be empty. */
  readonly onCall: string;
  /** Open requests from which on there is a backlog; 0: never. */
  readonly backlog: number;
}

/** As scripts take it. What somebody asked for counts before the usual time, and nothing beyond the longest. */
export const termArgs = ({ timeout, longest, reminders }: Terms, asked?: number) => ({
  span_us: Math.min(asked ?? timeout, longest) * 1_000_000,
  remind: reminders[0] ?? 0,
});

/** 50%,90% as parts of the whole, rising; off is none. */
export const partsOf = (text: string): number[] =>
  text === 'off'
    ? []
    : [...new Set(text.split(',').map((part) => Number.parseInt(part, 10) / 100))].sort((a, b) => a - b);
