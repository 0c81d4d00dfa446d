import { StringDecoder } from 'node:string_decoder';

export type Write = (text: string) => Promise<void> | void;

export interface Prefixed {
  add(chunk: Buffer): Promise<void>;
  /** Passes on what came without a newline at its end. */
  end(): Promise<void>;
}

/** A line longer than this is broken: nobody promises that a program ever writes a newline. */
const LONGEST_LINE = 16 * 1024;

/** Marks each line with its origin, so that several commands can share one terminal and lines never mix. */
export function prefixed(prefix: string, write: Write): Prefixed {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const pass = async (lines: readonly string[]) => {
    if (lines.length > 0) await write(lines.map((line) => `${prefix}${line}\n`).join(''));
  };
  return {
    add: async (chunk) => {
      const lines = (rest + decoder.write(chunk)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length >= LONGEST_LINE) {
        lines.push(rest);
        rest = '';
      }
      await pass(lines);
    },
    end: async () => {
      const last = rest + decoder.end();
      rest = '';
      await pass(last === '' ? [] : [last]);
    },
  };
}
