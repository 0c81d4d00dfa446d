import { isUtf8 } from 'node:buffer';
import type { Encoding } from './execution.ts';

/** The beginning tells what was tried, the end what came of it: a fourth and three fourths of what may stay. */
export function cut(bytes: Buffer, most: number, where: string): string {
  if (bytes.length <= most) return bytes.toString();
  const head = bytes.subarray(0, Math.floor(most / 4));
  const tail = bytes.subarray(-Math.ceil((most * 3) / 4));
  const left = bytes.length - head.length - tail.length;
  return `${wholeEnd(head)}\n[… ${left} bytes left out: ${where} …]\n${wholeStart(tail)}`;
}

/** A cut may go through a character; half of one is no text. */
const wholeEnd = (bytes: Buffer): string => bytes.toString().replace(/\uFFFD$/, '');
const wholeStart = (bytes: Buffer): string => bytes.toString().replace(/^\uFFFD{1,3}/, '');

/** As text where it is text, so that people can read it in Redis. */
export const encodingOf = (bytes: Uint8Array): Encoding => (isUtf8(bytes) ? 'utf8' : 'base64');
