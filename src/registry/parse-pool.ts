import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createPace } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import { createManifestParser, type ManifestFile, type Parsed, type ParseManifest } from './manifest.ts';
import type { ParseAnswer, ParseJob } from './parse-worker.ts';

export interface ParsePool extends AsyncDisposable {
  /** In the order of the files. */
  parse(files: readonly ManifestFile[], options?: ParseOptions): Promise<readonly Parsed[]>;
  close(): Promise<void>;
}

export interface ParseOptions {
  readonly signal?: AbortSignal;
  readonly progress?: (done: number, total: number) => void;
}

/** Reading a file of this size by hand could take longer than the event loop may wait. */
const LARGE_BYTES = 32 * 1024;
/** With cores to spare, threads pay from here on; before, they take longer to warm up than the files to read. */
const MANY_FILES = 2_000;
const SPARE_CORES = 4;
const BATCH_FILES = 100;
const BATCH_BYTES = 256 * 1024;

/**
 * Reads manifests without keeping the event loop busy: plain ones here, a stretch at a time; large ones, and very many where
 * there are cores for them, in threads. Threads start when they are first needed and end with close().
 */
export function createParsePool({ threads = Math.min(4, availableParallelism()) } = {}): ParsePool {
  const here = createManifestParser();
  const crew = new Crew(threads);
  const close = () => crew.close();
  return {
    parse: async (files, { signal, progress } = {}) => {
      const parsed: Parsed[] = new Array(files.length);
      let done = 0;
      const keep = (at: number, answer: Parsed) => {
        parsed[at] = answer;
        if (++done % BATCH_FILES === 0 || done === files.length) progress?.(done, files.length);
      };
      const isForThreads = (file: ManifestFile) =>
        file.bytes.byteLength > LARGE_BYTES || (threads >= SPARE_CORES && files.length >= MANY_FILES);
      const [away, near] = [true, false].map((wanted) =>
        files.flatMap((file, at) => (isForThreads(file) === wanted ? [{ file, at }] : [])),
      ) as [Placed[], Placed[]];
      await Promise.all([inThreads(crew, threads, away, keep, signal), inStretches(here, near, keep, signal)]);
      return parsed;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Placed {
  readonly file: ManifestFile;
  readonly at: number;
}
type Keep = (at: number, answer: Parsed) => void;

async function inStretches(parse: ParseManifest, files: readonly Placed[], keep: Keep, signal?: AbortSignal) {
  const pace = createPace();
  for (const { file, at } of files) {
    keep(at, parse(file));
    const pause = pace();
    if (!pause) continue;
    await pause;
    signal?.throwIfAborted();
  }
}

async function inThreads(crew: Crew, threads: number, files: readonly Placed[], keep: Keep, signal?: AbortSignal) {
  const queue = batches(files);
  const seats = Array.from({ length: Math.min(threads, queue.length) }, async (_, seat) => {
    for (let batch = queue.shift(); batch; batch = queue.shift()) {
      signal?.throwIfAborted();
      const answers = await crew.ask(
        seat,
        batch.map(({ file }) => file),
      );
      for (const [index, answer] of answers.entries()) keep(batch[index]!.at, answer);
    }
  });
  await Promise.all(seats);
}

function batches(files: readonly Placed[]): Placed[][] {
  const made: Placed[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const placed of files) {
    if (bytes >= BATCH_BYTES || (made.at(-1)?.length ?? 0) >= BATCH_FILES) {
      made.push([]);
      bytes = 0;
    }
    made.at(-1)!.push(placed);
    bytes += placed.file.bytes.byteLength;
  }
  return made;
}

/** What a thread runs first: modules do nothing when they are imported. */
const START = `const { parentPort, workerData } = require('node:worker_threads');
import(workerData).then(({ serveParsing }) => serveParsing(parentPort));`;

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
    const module = new URL(`./parse-worker${extname(import.meta.url)}`, import.meta.url).href;
    const worker = new Worker(START, { eval: true, workerData: module });
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
