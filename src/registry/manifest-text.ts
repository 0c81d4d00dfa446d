import type { Problem } from './path-record.ts';

/** Larger files are not even fetched: a listing knows the size. */
export const MAX_MANIFEST_BYTES = 512 * 1024;
export const TOO_LARGE_HINT = 'Keep long text in a file of its own beside the manifest.';

const LFS = 'version https://git-lfs.github.com/spec/';

/** The text of a manifest, or why its bytes are none. */
export function textOf(bytes: Uint8Array): string | Problem {
  if (bytes.byteLength > MAX_MANIFEST_BYTES) {
    const message = `the file has ${bytes.byteLength} bytes, more than ${MAX_MANIFEST_BYTES}`;
    return { code: 'TOO_LARGE', message, hint: TOO_LARGE_HINT };
  }
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return { code: 'UTF16', message: 'the file is UTF-16', hint: 'Save it as UTF-8.', line: 1, column: 1 };
  }
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    const line = lineOfBadByte(bytes);
    return { code: 'NOT_UTF8', message: 'the file is not UTF-8', hint: 'Save it as UTF-8.', line, column: 1 };
  }
  if (text.startsWith(LFS)) {
    return {
      code: 'LFS_POINTER',
      message: 'the file is a Git LFS pointer, not a manifest',
      hint: 'Take manifests out of Git LFS: git lfs untrack "*.yaml"',
      line: 1,
      column: 1,
    };
  }
  const control = text.search(CONTROL);
  if (control >= 0) {
    const code = text.codePointAt(control)?.toString(16).toUpperCase().padStart(4, '0');
    return { code: 'CONTROL_CHARACTER', message: `a control character (U+${code})`, ...placeIn(text, control) };
  }
  return text;
}

/** A byte order mark is dropped by the decoder, once. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });
const LOOSE = new TextDecoder('utf-8');
/** What YAML does not print: control characters but tab and line breaks. */
const CONTROL = /(?![\t\n\r\u0080-\u009F])\p{Cc}/u;

/** Line and column of an offset, counted from 1. A lone CR ends a line, too. */
export function placeIn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

function lineOfBadByte(bytes: Uint8Array): number {
  const at = LOOSE.decode(bytes).indexOf('\uFFFD');
  return at < 0 ? 1 : placeIn(LOOSE.decode(bytes), at).line;
}
