import { rowA } from '../prd-db.ts';

/** How much happens. The suite runs the smallest that the promise names; `npm run test:chaos` runs a larger one. */
export interface ChaosSize {
  readonly tasks: number;
  /** Through the daemon's HTTP door, in this process. */
  readonly modern: number;
  /** `reeve worker` as processes of their own. */
  readonly workers: number;
  /** Plain Redis commands as the contract's Pattern 1 has them; the last of them as the shell script itself. */
  readonly raw: number;
  readonly agentKills: number;
  readonly daemonKills: number;
  readonly redisKills: number;
  /** How often somebody holds the task file for a while. */
  readonly fileLocks: number;
  /** How often a person edits the file: a new row, a new title and priority, a task done by hand. */
  readonly edits: number;
}

export type FaultKind = 'agent' | 'daemon' | 'redis' | 'file' | 'edit';
export interface Fault {
  readonly kind: FaultKind;
  /** It strikes when so many tasks have been finished. */
  readonly after: number;
}

export interface ChaosPlan {
  readonly rows: ReturnType<typeof rowA>[];
  readonly faults: readonly Fault[];
}

/** Everything that is decided beforehand, from one number: the same number is the same plan. */
export function planChaos(random: Random, size: ChaosSize): ChaosPlan {
  return { rows: tasks(random, size.tasks), faults: faults(random, size) };
}

export const taskName = (at: number): string => `T-${String(at).padStart(5, '0')}`;

const LAYERS = 8;
const CATEGORIES = ['Backend', 'UI', 'Testing', 'Setup', null];

/** Layers that need one another, and files that many of them touch: single ones, folders, and some only read. */
function tasks(random: Random, count: number): ReturnType<typeof rowA>[] {
  const perLayer = Math.ceil(count / LAYERS);
  return Array.from({ length: count }, (_, at) => {
    const layer = Math.floor(at / perLayer);
    const before = layer * perLayer;
    const needs = layer === 0 ? 0 : random.below(4);
    const depends_on = Array.from({ length: needs }, () =>
      taskName(before - 1 - random.below(Math.min(before, perLayer * 2))),
    );
    return rowA(taskName(at), {
      priority: 1 + random.below(10),
      category: random.one(CATEGORIES),
      depends_on: random.chance(0.05) && needs === 0 ? null : JSON.stringify([...new Set(depends_on)]),
      files_to_modify: random.chance(0.4) ? JSON.stringify([touched(random)]) : null,
    });
  });
}

function touched(random: Random): string {
  const folder = `src/part-${random.below(40)}/`;
  return random.chance(0.2) ? folder : `${folder}file-${random.below(6)}.ts`;
}

/** Spread over the first part of the run, so that what they break has time to be mended. */
function faults(random: Random, size: ChaosSize): Fault[] {
  const spread = (kind: FaultKind, count: number): Fault[] =>
    Array.from({ length: count }, (_, at) => ({
      kind,
      after: Math.floor(size.tasks * (0.02 + 0.7 * ((at + random.next()) / count))),
    }));
  return [
    ...spread('agent', size.agentKills),
    ...spread('daemon', size.daemonKills),
    ...spread('redis', size.redisKills),
    ...spread('file', size.fileLocks),
    ...spread('edit', size.edits),
  ].sort((a, b) => a.after - b.after);
}

/** Numbers that look like chance and come again with their seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }

  /** One of its own, so that what one agent draws does not depend on how fast the others are. */
  fork(): Random {
    return new Random(this.below(2 ** 32));
  }
}
