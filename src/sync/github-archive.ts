import { Parser, type ReadEntry } from 'tar';
import { createPace } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import { blobSha } from '../registry/asset.ts';
import type { GithubClient } from './github-client.ts';
import type { Blob, Entry } from './source.ts';

export interface ArchiveOptions {
  readonly client: GithubClient;
  readonly params: { readonly owner: string; readonly repo: string };
  readonly commit: string;
  readonly wanted: readonly Entry[];
  readonly address: string;
  readonly signal: AbortSignal;
}

/** What an archive may expand to before it counts as an attack. */
const MOST_BYTES = 2 ** 30;
const SLICE_BYTES = 4096;

/**
 * Files out of the tarball of a commit, as it streams by. Git attributes may change or leave out files in an archive, so
 * only bytes that have the SHA of the listing come out; links and everything not asked for are passed over.
 * An archive that breaks off gives what it gave: the rest is asked for otherwise.
 */
export async function* archivedBlobs({
  client,
  params,
  commit,
  wanted,
  address,
  signal,
}: ArchiveOptions): AsyncIterable<Blob> {
  const byPath = new Map(wanted.map(({ path, sha }) => [path, sha]));
  const ready: Blob[] = [];
  let expanded = 0;
  const parser = new Parser({
    strict: false,
    onReadEntry(entry: ReadEntry) {
      expanded += entry.size;
      const sha = byPath.get(entry.path.slice(entry.path.indexOf('/') + 1));
      if (!sha || (entry.type !== 'File' && entry.type !== 'OldFile')) {
        entry.resume();
        return;
      }
      const chunks: Buffer[] = [];
      entry.on('data', (chunk: Buffer) => void chunks.push(chunk));
      entry.on('end', () => {
        const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
        if (blobSha(bytes) === sha) ready.push({ sha, bytes });
      });
    },
  });
  try {
    const ref = { ...params, ref: commit };
    const body = await client.stream('/repos/{owner}/{repo}/tarball/{ref}', { params: ref, signal });
    const pace = createPace();
    for await (const chunk of body) {
      // Text packs well: a few kilobytes may be a hundred files.
      for (let at = 0; at < chunk.byteLength; at += SLICE_BYTES) {
        parser.write(Buffer.from(chunk.subarray(at, at + SLICE_BYTES)));
        if (expanded > MOST_BYTES) throw tooLarge(address);
        yield* ready.splice(0);
        await pace();
      }
    }
    parser.end();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ReeveError && error.code !== 'SOURCE_UNREACHABLE') throw error;
  }
  yield* ready.splice(0);
}

const tooLarge = (source: string) =>
  new ReeveError('SOURCE_FORBIDDEN', { source, problem: 'its archive is too large to be a library of assets' });
