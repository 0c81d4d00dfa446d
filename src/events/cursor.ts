import { ReeveError } from '../errors.ts';
import { STREAM_NAMES, type StreamName } from './catalogue.ts';

/**
 * A place in several streams at once: for each, the last id seen. One id cannot serve for all of them: within a
 * millisecond a second stream may still get an entry with a smaller sequence number than one already read elsewhere.
 */
export type Cursor = Readonly<Partial<Record<StreamName, string>>>;

const ID = /^\d{1,16}-\d{1,20}$/;

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
  if (!entries.every(([stream, id]) => STREAM_NAMES.includes(stream as StreamName) && ID.test(id))) {
    throw new ReeveError('BAD_CURSOR', { cursor: text });
  }
  return Object.fromEntries(entries);
}

/** Orders stream ids by time, then sequence. */
export function compareIds(a: string, b: string): number {
  const [aMs = '0', aSeq = '0'] = a.split('-');
  const [bMs = '0', bSeq = '0'] = b.split('-');
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq);
}

export const advance = (
  cursor: Cursor,
  { stream, id }: { readonly stream: StreamName; readonly id: string },
): Cursor => ({
  ...cursor,
  [stream]: id,
});
