import type { Phase } from '../tasks/station.ts';
import type { PrdFormat } from './prd-db.ts';

/** What a file's word for a status means to us. */
export interface FileStatus {
  readonly phase: Phase;
  /** Whether a person put it aside: the word alone says so, or only one that was written over another. */
  readonly hold: 'none' | 'edit' | 'word';
}

const plain = (phase: Phase): FileStatus => ({ phase, hold: 'none' });
export const OPEN = plain('open');

const words = (table: Readonly<Record<string, FileStatus>>) => new Map(Object.entries(table));

interface Words {
  readonly read: ReadonlyMap<string, FileStatus>;
  readonly write: Readonly<Record<Phase, string>>;
}

/**
 * The words each format has for a status, both ways; any other word is an error, never a guess.
 * A: `blocked` means that dependencies are open, which is for the queue to know; but we never write it, so over another
 * word it is a person's.
 * B: `blocked` and `review` are a person's doing. It has no `failed`, and reads what it does not know as pending, so a
 * failure is written as `blocked`: it shows, nobody picks it up, and task_logs says why.
 */
const WORDS: Readonly<Record<PrdFormat, Words>> = {
  A: {
    read: words({
      pending: OPEN,
      blocked: { phase: 'open', hold: 'edit' },
      assigned: plain('running'),
      in_progress: plain('running'),
      completed: plain('completed'),
      failed: plain('failed'),
      cancelled: plain('cancelled'),
      canceled: plain('cancelled'),
    }),
    write: { open: 'pending', running: 'in_progress', completed: 'completed', failed: 'failed', cancelled: 'failed' },
  },
  B: {
    read: words({
      pending: OPEN,
      in_progress: plain('running'),
      blocked: { phase: 'open', hold: 'word' },
      review: { phase: 'open', hold: 'word' },
      completed: plain('completed'),
      cancelled: plain('cancelled'),
    }),
    write: {
      open: 'pending',
      running: 'in_progress',
      completed: 'completed',
      failed: 'blocked',
      cancelled: 'cancelled',
    },
  },
};

/** Capitals, spaces and hyphens are spelling; another word is another word. */
export const readStatus = (format: PrdFormat, word: string): FileStatus | undefined =>
  WORDS[format].read.get(spelt(word));

export const writeStatus = (format: PrdFormat, phase: Phase): string => WORDS[format].write[phase];

export const knownWords = (format: PrdFormat): string => [...WORDS[format].read.keys()].join(', ');

/** The words of format B; the higher the more urgent. */
const PRIORITY_WORDS = new Map(Object.entries({ low: 1, medium: 2, high: 3, critical: 4 }));

export const readPriorityWord = (word: string): number | undefined => PRIORITY_WORDS.get(spelt(word));

const spelt = (word: string): string => word.trim().toLowerCase().replaceAll(/[ -]/g, '_');

/** Times as the format has them. B's reader stops at the first it cannot parse, so an offset is a must there. */
export function writeTime(format: PrdFormat, iso: string): string {
  return format === 'A' ? iso.slice(0, 19).replace('T', ' ') : iso.replace(/Z$/, '+00:00');
}

/** Either form as RFC 3339 in UTC; undefined for what is no time, which only costs us the time. */
export function readTime(text: string): string | undefined {
  if (text === '') return undefined;
  const at = new Date(ZONELESS.test(text) ? `${text.replace(' ', 'T')}Z` : text);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

const ZONELESS = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?$/;
