export interface Captured {
  readonly text: string;
  /** All that was written, kept or not. */
  readonly bytes: number;
  readonly isTruncated: boolean;
  /** Its last bytes, as they were. */
  readonly tail: Buffer;
}

const HEAD_BYTES = 8 * 1024;
const TAIL_BYTES = 24 * 1024;

/**
 * Keeps the beginning and the end of an output, whatever its size. The beginning tells what was tried, the end what
 * came of it; what lies between is counted and let go.
 */
export class Capture {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  #head = Buffer.alloc(0);
  #tail: Buffer[] = [];
  #tailLength = 0;
  #bytes = 0;

  constructor({ headBytes = HEAD_BYTES, tailBytes = TAIL_BYTES } = {}) {
    this.#headBytes = headBytes;
    this.#tailBytes = tailBytes;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const room = this.#headBytes - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)]);
    const rest = chunk.subarray(Math.max(0, room));
    if (rest.length > 0) this.#addToTail(rest);
  }

  taken(): Captured {
    const tail = Buffer.concat(this.#tail).subarray(-this.#tailBytes);
    const missing = this.#bytes - this.#head.length - tail.length;
    if (missing <= 0) {
      return { text: Buffer.concat([this.#head, tail]).toString(), bytes: this.#bytes, isTruncated: false, tail };
    }
    const text = `${wholeEnd(this.#head)}\n[… ${missing} bytes left out …]\n${wholeStart(tail)}`;
    return { text, bytes: this.#bytes, isTruncated: true, tail };
  }

  /** Whole chunks are let go as soon as those after them fill the tail. A copy: a slice would keep all of its chunk. */
  #addToTail(chunk: Buffer): void {
    const kept = Buffer.from(chunk.subarray(-this.#tailBytes));
    this.#tail.push(kept);
    this.#tailLength += kept.length;
    for (
      let first = this.#tail[0];
      first && this.#tailLength - first.length >= this.#tailBytes;
      first = this.#tail[0]
    ) {
      this.#tail.shift();
      this.#tailLength -= first.length;
    }
  }
}

/** A cut may go through a character; half of one is no text. */
const wholeEnd = (bytes: Buffer): string => bytes.toString().replace(/\uFFFD$/, '');
const wholeStart = (bytes: Buffer): string => bytes.toString().replace(/^\uFFFD{1,3}/, '');
