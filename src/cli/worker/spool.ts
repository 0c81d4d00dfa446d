import { type FileHandle, open, readFile } from 'node:fs/promises';
import type { Captured } from './capture.ts';

/** What of an output goes to the daemon besides its end: as much as it takes of itself. */
const MOST_BYTES = 8 * 1024 * 1024 - 64 * 1024;

/** The whole of an output, or the beginning of a very long one, on disk: a machine runs many commands at a time. */
export class Spool {
  readonly #path: string;
  #file: FileHandle | undefined;
  #bytes = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** Both streams of a command come here; their parts are written one after the other. */
  add(chunk: Buffer): Promise<void> {
    const room = MOST_BYTES - this.#bytes;
    if (room <= 0) return this.#writing;
    const part = chunk.subarray(0, room);
    this.#bytes += part.length;
    this.#writing = this.#writing.then(async () => {
      this.#file ??= await open(this.#path, 'w', 0o600);
      await this.#file.appendFile(part);
    });
    return this.#writing;
  }

  /** All of it; of a very long one its beginning and the end that was captured. */
  async taken({ bytes, tail }: Captured): Promise<Buffer> {
    await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
    const start = this.#bytes > 0 ? await readFile(this.#path) : Buffer.alloc(0);
    if (bytes <= this.#bytes) return start;
    const missing = Math.max(0, bytes - this.#bytes - tail.length);
    return Buffer.concat([start, Buffer.from(`\n[… ${missing} bytes left out …]\n`), tail]);
  }
}
