import { blobSha } from '../registry/asset.ts';
import type { Blob, Entry, ReadQuestion, Source } from './source.ts';

/** Reads from a source and passes on only what has the SHA it should have; anything else counts as not delivered. */
export async function* verified(
  source: Source,
  commit: string,
  wanted: readonly Entry[],
  ask: ReadQuestion,
): AsyncIterable<Blob> {
  const open = new Map(wanted.map((entry) => [entry.sha, entry]));
  for await (const blob of source.read(commit, [...open.values()], ask)) {
    if (!open.has(blob.sha) || blobSha(blob.bytes) !== blob.sha) continue;
    open.delete(blob.sha);
    yield blob;
  }
}
