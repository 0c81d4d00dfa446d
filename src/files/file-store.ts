import { ReeveError } from '../errors.ts';

/** Where what is too large for Redis is kept: outputs, and what undoes a change. Written once, read in parts, thrown away. */
export interface FileStore {
  /** Names the place, so that a key can be told from the same one elsewhere: `file:HOST`, `s3:BUCKET`. */
  readonly place: string;
  /** All of it, or nothing: who reads meanwhile sees no half of it. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** These bytes of it, fewer at its end; undefined if there is no such file. */
  read(key: string, range: { readonly offset: number; readonly length: number }): Promise<FilePart | undefined>;
  /** One that is not there is as good as removed. */
  remove(key: string): Promise<void>;
}

export interface FilePart {
  readonly bytes: Buffer;
  /** Of the whole file. */
  readonly size: number;
}

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;

/** A key is a path of plain names. Nothing in it leads out of the place, whoever made its parts. */
export function checkFileKey(key: string): string {
  const segments = key.split('/');
  if (segments.length === 0 || segments.length > 8 || !segments.every((segment) => SEGMENT.test(segment))) {
    throw new ReeveError('FILE_KEY_INVALID', { key: JSON.stringify(key.slice(0, 100)) });
  }
  return key;
}
