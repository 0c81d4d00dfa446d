import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { setImmediate as breath } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { ReeveError } from '../errors.ts';
import { createManifestParser, type ManifestFile, type Parsed } from './manifest.ts';
import type { ParseAnswer, ParseJob } from './parse-worker.ts';

export interface ParsePool extends AsyncDisposable {
  /** In the order of the files. Few small files are read here and now, many or large ones in threads of their own. */
  parse(files: readonly ManifestFile[], options?: ParseOptions): Promise<readonly Parsed[]>;
  close(): Promise<void>;
}

export interface ParseOptions {
  readonly signal?: AbortSignal;
  readonly progress?: (done: number, total: number) => void;
}

/** Below this a thread would take longer to start than the files to read. */
const FEW_FILES = 40;
const FEW_BYTES = 64 * 1024;
const BATCH_FILES = 100;
const BATCH_BYTES = 256 * 1024;

/** Reads manifests without keeping the event loop busy: threads start with the first large batch and end with close(). */
export function createParsePool({ threads = Math.min(4, availableParallelism()) } = {}): ParsePool {
  const here = createManifestParser();
  const crew = new Crew(threads);
  const close = () => crew.close();
  return {
    parse: async (files, { signal, progress } = {}) => {
      const bytes = files.reduce((sum, file) => sum + file.bytes.byteLength, 0);
      if (files.length <= FEW_FILES && bytes <= FEW_BYTES) return files.map(here);
      const parsed: Parsed[] = new Array(files.length);
      let done = 0;
      const queue = batches(files);
      const worker = async (seat: number) => {
        for (let batch = queue.shift(); batch; batch = queue.shift()) {
          signal?.throwIfAborted();
          const answers = await crew.ask(seat, batch.files);
          answers.forEach((answer, index) => {
            parsed[(batch as Batch).from + index] = answer;
          });
          done += answers.length;
          progress?.(done, files.length);
          await breath();
        }
      };
      await Promise.all(Array.from({ length: Math.min(threads, queue.length) }, (_, seat) => worker(seat)));
      return parsed;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Batch {
  readonly from: number;
  readonly files: readonly ManifestFile[];
}

function batches(files: readonly ManifestFile[]): Batch[] {
  const made: Batch[] = [];
  let from = 0;
  let bytes = 0;
  files.forEach((file, index) => {
    bytes += file.bytes.byteLength;
    const isFull = index + 1 - from >= BATCH_FILES || bytes >= BATCH_BYTES || index === files.length - 1;
    if (!isFull) return;
    made.push({ from, files: files.slice(from, index + 1) });
    from = index + 1;
    bytes = 0;
  });
  return made;
}

interface Waiting {
  readonly resolve: (parsed: Parsed[]) => void;
  readonly reject: (error: Error) => void;
}

/** The threads, each with the questions it has not answered yet. */
class Crew {
  readonly #threads: number;
  readonly #workers = new Map<number, Worker>();
  readonly #waiting = new Map<number, Waiting & { readonly seat: number }>();
  #asked = 0;

  constructor(threads: number) {
    this.#threads = threads;
  }

  ask(seat: number, files: readonly ManifestFile[]): Promise<Parsed[]> {
    const content = new ArrayBuffer(files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    const all = new Uint8Array(content);
    let at = 0;
    for (const { bytes } of files) {
      all.set(bytes, at);
      at += bytes.byteLength;
    }
    const number = ++this.#asked;
    const named = files.map(({ path, sha, bytes }) => ({ path, sha, bytes: bytes.byteLength }));
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, seat });
      this.#worker(seat % this.#threads).postMessage({ number, files: named, content } satisfies ParseJob, [content]);
    });
  }

  async close(): Promise<void> {
    const workers = [...this.#workers.values()];
    this.#workers.clear();
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  #worker(seat: number): Worker {
    const running = this.#workers.get(seat);
    if (running) {
      running.ref();
      return running;
    }
    const worker = new Worker(new URL(`./parse-worker${extname(import.meta.url)}`, import.meta.url));
    this.#workers.set(seat, worker);
    worker.on('message', ({ number, json }: ParseAnswer) => {
      this.#waiting.get(number)?.resolve(JSON.parse(json) as Parsed[]);
      this.#waiting.delete(number);
      // An idle thread must not keep the process alive.
      if (this.#isIdle(seat)) worker.unref();
    });
    worker.on('error', (cause) => this.#lost(seat, cause));
    worker.on('exit', () => this.#lost(seat, new Error('a parser thread ended')));
    return worker;
  }

  #isIdle(seat: number): boolean {
    return ![...this.#waiting.values()].some((waiting) => waiting.seat === seat);
  }

  #lost(seat: number, cause: Error): void {
    this.#workers.delete(seat);
    for (const [number, waiting] of this.#waiting) {
      if (waiting.seat !== seat) continue;
      this.#waiting.delete(number);
      waiting.reject(new ReeveError('INTERNAL', {}, { cause }));
    }
  }
}
