import type { MessagePort } from 'node:worker_threads';
import { createManifestParser, type ManifestFile } from './manifest.ts';

/** One batch of files out of one buffer: moving a buffer to another thread is free, copying many objects is not. */
export interface ParseJob {
  readonly number: number;
  readonly files: readonly { readonly path: string; readonly sha: string; readonly bytes: number }[];
  readonly content: ArrayBuffer;
}

/** The answers as JSON: cheaper to hand over than objects. */
export interface ParseAnswer {
  readonly number: number;
  readonly json: string;
}

/** Answers what comes through the port, for as long as the thread lives. */
export function serveParsing(port: MessagePort): void {
  const parse = createManifestParser();
  port.on('message', ({ number, files, content }: ParseJob) => {
    let at = 0;
    const parsed = files.map(({ path, sha, bytes }) => {
      const file: ManifestFile = { path, sha, bytes: new Uint8Array(content, at, bytes) };
      at += bytes;
      return parse(file);
    });
    port.postMessage({ number, json: JSON.stringify(parsed) } satisfies ParseAnswer);
  });
}
