import { ReeveError } from '../errors.ts';
import { STREAM_NAMES, type StreamName } from './catalogue.ts';

/**
 * A place in several streams at once: for each, the last id seen. One id cannot serve for all of them: within a
 * millisecond a second stream may still get an entry with a smaller sequence number than one already read elsewhere.
 */
export type Cursor = Readonly<Partial<Record<StreamName, string>>>;

/** Both parts of an id are unsigned numbers of 64 bits. */
const MOST = 2n ** 64n - 1n;
const ID = /^\d{1,20}-\d{1,20}$/;

/** 'system.1731912345000-0~lock.1731912345001-3': readable, safe in URLs and in Last-Event-ID. */
export const formatCursor = (cursor: Cursor): string =>
  STREAM_NAMES.filter((stream) => cursor[stream] !== undefined)
    .map((stream) => `${stream}.${cursor[stream]}`)
    .join('~');

export function parseCursor(text: string): Cursor {
  const entries = text.split('~').map((part) => {
    const dot = part.indexOf('.');
    return [part.slice(0, dot), part.slice(dot + 1)] as const;
  });
  if (!entries.every(([stream, id]) => STREAM_NAMES.includes(stream as StreamName) && isPlace(id))) {
    throw new ReeveError('BAD_CURSOR', { cursor: text });
  }
  return Object.fromEntries(entries);
}

/** Orders stream ids by time, then sequence. */
export function compareIds(a: string, b: string): number {
  const [[aMs, aSeq], [bMs, bSeq]] = [halves(a), halves(b)];
  if (aMs !== bMs) return aMs < bMs ? -1 : 1;
  if (aSeq !== bSeq) return aSeq < bSeq ? -1 : 1;
  return 0;
}

/** The place right before an entry: reading on from there begins with it. */
export function placeBefore(id: string): string {
  const [ms, seq] = halves(id);
  if (seq > 0n) return `${ms}-${seq - 1n}`;
  return ms > 0n ? `${ms - 1n}-${MOST}` : '0-0';
}

/** Whether Redis can read on from there; after the very last id there is nothing it could. */
function isPlace(id: string): boolean {
  if (!ID.test(id)) return false;
  const [ms, seq] = halves(id);
  return ms <= MOST && seq <= MOST && !(ms === MOST && seq === MOST);
}

function halves(id: string): readonly [ms: bigint, seq: bigint] {
  const dash = id.indexOf('-');
  return [BigInt(id.slice(0, dash)), BigInt(id.slice(dash + 1))];
}

export const advance = (
  cursor: Cursor,
  { stream, id }: { readonly stream: StreamName; readonly id: string },
): Cursor => ({
  ...cursor,
  [stream]: id,
});
