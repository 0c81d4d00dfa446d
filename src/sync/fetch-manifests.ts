import { createPace } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Blobs } from '../registry/blobs.ts';
import type { ManifestFile, Parsed } from '../registry/manifest.ts';
import type { ParsePool } from '../registry/parse-pool.ts';
import type { ListedFile } from '../registry/plan.ts';
import { hostility } from './paths.ts';
import type { Entry, ReadQuestion, Source } from './source.ts';
import { verified } from './verified.ts';

export interface FetchOptions {
  readonly source: Source;
  readonly blobs: Blobs;
  readonly pool: ParsePool;
  readonly commit: string;
  /** What to read, by path. */
  readonly files: ReadonlyMap<string, ListedFile>;
  readonly ask: ReadQuestion;
  readonly onProgress: (done: number, total: number) => void;
}

/** So many files are read, cached and given to the parser at a time: enough to be quick, few enough to hold in memory. */
const CHUNK = 200;
/** A source may be quicker than the parser; more than this does not wait in memory. */
const MOST_WAITING = 3;

/**
 * Every wanted file, parsed: from the blob cache where it has them, from the source otherwise. What comes from the source
 * is in the cache before anything is published, so that a sync that breaks off goes on where it stopped.
 */
export async function fetchManifests(options: FetchOptions): Promise<Map<string, Parsed>> {
  const { blobs, pool, files, ask, onProgress } = options;
  const parsed = new Map<string, Parsed>();
  const bySha = new Map<string, string[]>();
  const pace = createPace();
  for (const [path, { sha }] of files) {
    const why = hostility(path);
    if (why) parsed.set(path, { outcome: 'bad', code: 'PATH_HOSTILE', message: `the path cannot be used: ${why}` });
    else bySha.set(sha, [...(bySha.get(sha) ?? []), path]);
    const pause = pace();
    if (pause) await pause;
  }
  const parsing: Promise<void>[] = [];
  /** Resolves when there is room for more. */
  const parse = async (chunk: ReadonlyMap<string, Uint8Array>): Promise<void> => {
    const batch: ManifestFile[] = [...chunk].flatMap(([sha, bytes]) =>
      (bySha.get(sha) ?? []).map((path) => ({ path, sha, bytes })),
    );
    const work = pool.parse(batch, { signal: ask.signal }).then((answers) => {
      for (const [at, answer] of answers.entries()) parsed.set(batch[at]!.path, answer);
      onProgress(parsed.size, files.size);
    });
    // Awaited below, all together; until then a rejection must not count as unheard.
    work.catch(() => {});
    parsing.push(work);
    await parsing.at(-MOST_WAITING);
  };

  onProgress(parsed.size, files.size);
  const cached = await blobs.has([...bySha.keys()]);
  const missing = new Set([...bySha.keys()].filter((sha) => !cached.has(sha)));
  for (const shas of chunks([...cached])) {
    const found = await blobs.get(shas);
    for (const sha of shas) if (!found.has(sha)) missing.add(sha);
    await parse(found);
  }
  await fetchMissing(options, missing, bySha, parse);
  await Promise.all(parsing);
  return parsed;
}

async function fetchMissing(
  { source, blobs, commit, files, ask }: FetchOptions,
  missing: Set<string>,
  bySha: ReadonlyMap<string, readonly string[]>,
  parse: (chunk: ReadonlyMap<string, Uint8Array>) => Promise<void>,
): Promise<void> {
  let chunk = new Map<string, Uint8Array>();
  let stored = Promise.resolve();
  const flush = async () => {
    await stored;
    const full = chunk;
    chunk = new Map();
    stored = blobs.put(full);
    stored.catch(() => {});
    await parse(full);
  };
  try {
    // Asked twice: what a source left out at first may have been a hiccup.
    for (let attempt = 0; attempt < 2 && missing.size > 0; attempt++) {
      const wanted = [...missing].map((sha): Entry => {
        const path = bySha.get(sha)![0]!;
        return { path, sha, mode: '100644', size: files.get(path)!.size };
      });
      for await (const { sha, bytes } of verified(source, commit, wanted, ask)) {
        missing.delete(sha);
        chunk.set(sha, bytes);
        if (chunk.size >= CHUNK) await flush();
      }
    }
  } finally {
    // Also when the source gave up half-way: what it has given need not be asked for again.
    if (chunk.size > 0) await flush();
  }
  await stored;
  if (missing.size > 0) {
    const problem = `${missing.size} of its files could not be had`;
    throw new ReeveError('SOURCE_UNREACHABLE', { source: source.address, problem });
  }
}

function* chunks<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += CHUNK) yield items.slice(at, at + CHUNK);
}
