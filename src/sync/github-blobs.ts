import type { z } from 'zod';
import { ReeveError } from '../errors.ts';
import { blobSha } from '../registry/asset.ts';
import type { GithubClient, GraphqlAnswer } from './github-client.ts';
import { refusal } from './github-faults.ts';
import { blobsAnswer, blobsQuery } from './github-queries.ts';
import type { Blob, Entry } from './source.ts';

export interface Batches {
  readonly client: GithubClient;
  readonly owner: string;
  readonly name: string;
  /** refs/heads/BRANCH; empty for the default branch. */
  readonly ref: string;
  readonly previous: string | undefined;
  readonly address: string;
  readonly signal: AbortSignal;
  readonly onAnswer: (answer: Told) => void;
}

/** What a batch tells besides blobs. */
export interface Told {
  readonly identity: string;
  readonly descends: boolean | undefined;
}

/** Seen to work; larger ones are answered with 502 now and then. */
const MOST_BLOBS = 25;
const MOST_BYTES = 64 * 1024;
/** GraphQL cuts long texts, and a large one makes its batch fail: such a file is asked for alone, by REST. */
const MOST_TEXT = MOST_BYTES;
const TOGETHER = 4;

/** Blobs by the batch, sized by count and bytes; a batch that fails is halved, a blob that fails alone is got by REST. */
export async function* batchedBlobs(wanted: readonly Entry[], batches: Batches): AsyncIterable<Blob> {
  if (!batches.client.isLoggedIn) return yield* singly(wanted, batches);
  const { small = [], large = [] } = Object.groupBy(wanted, ({ size }) => (size <= MOST_TEXT ? 'small' : 'large'));
  const failed: Entry[] = [];
  const queue = packed(small);
  let isFirst = true;
  while (queue.length > 0) {
    const now = queue.splice(0, isFirst ? 1 : TOGETHER);
    const answers = await Promise.all(now.map((batch) => ask(batch, batches, isFirst)));
    isFirst = false;
    for (const [at, answer] of answers.entries()) {
      const batch = now[at]!;
      if (answer) {
        yield* answer.blobs;
        failed.push(...answer.missing);
      } else if (batch.length > 1) {
        const middle = Math.ceil(batch.length / 2);
        queue.unshift(batch.slice(0, middle), batch.slice(middle));
      } else failed.push(...batch);
    }
  }
  yield* singly([...failed, ...large], batches);
}

/** Only the relation of two commits and the identity of the repository, without any blob. */
export async function relationOf(batches: Omit<Batches, 'onAnswer'>): Promise<Told> {
  const told: Told[] = [];
  await ask([], { ...batches, onAnswer: (answer) => void told.push(answer) }, true);
  if (!told[0]) throw refusal(batches.address, []);
  return told[0];
}

/** By number and by bytes; sizes are known from the listing. */
function packed(entries: readonly Entry[]): Entry[][] {
  const batches: Entry[][] = [];
  let bytes = 0;
  for (const entry of entries) {
    const last = batches.at(-1);
    if (!last || last.length >= MOST_BLOBS || bytes + entry.size > MOST_BYTES) {
      batches.push([entry]);
      bytes = entry.size;
    } else {
      last.push(entry);
      bytes += entry.size;
    }
  }
  return batches;
}

/** Undefined when the batch as a whole failed in a way that a smaller one may not. */
async function ask(batch: readonly Entry[], batches: Batches, isFirst: boolean) {
  const { client, owner, name, ref, previous, address, signal } = batches;
  const relation = isFirst && previous !== undefined ? { named: ref !== '' } : undefined;
  const oids = Object.fromEntries(batch.map(({ sha }, at) => [`b${at}`, sha]));
  const asked = relation && { previous, was: previous, ...(relation.named && { ref }) };
  let answer: GraphqlAnswer;
  try {
    answer = await client.graphql(blobsQuery(batch.length, relation), { owner, name, ...asked, ...oids }, signal);
  } catch (error) {
    if (error instanceof ReeveError && error.code === 'SOURCE_UNREACHABLE' && batch.length > 0) return undefined;
    throw error;
  }
  const repository = blobsAnswer.safeParse(answer.data).data?.repository;
  if (!repository) {
    if (answer.errors.some(({ type }) => type === 'NOT_FOUND' || type === 'FORBIDDEN'))
      throw refusal(address, answer.errors);
    return undefined;
  }
  batches.onAnswer({ identity: String(repository.databaseId), descends: relation && descends(repository, answer) });
  const blobs: Blob[] = [];
  const missing: Entry[] = [];
  batch.forEach((entry, at) => {
    const blob = repository[`b${at}`];
    // An absent text says nothing about the file: it may be binary, or its part of the answer failed. What is not UTF-8
    // comes mended, so with other bytes.
    const bytes = typeof blob?.text === 'string' && !blob.isTruncated ? Buffer.from(blob.text) : undefined;
    if (bytes && blobSha(bytes) === entry.sha) blobs.push({ sha: entry.sha, bytes });
    else missing.push(entry);
  });
  return { blobs, missing };
}

/**
 * Seen from the branch, an ancestor is behind. A commit that is not there any more was rewritten away; one that is there
 * and was not compared says nothing.
 */
function descends(
  { ref, was }: NonNullable<z.output<typeof blobsAnswer>['repository']>,
  { errors }: GraphqlAnswer,
): boolean | undefined {
  const status = ref?.compare?.status;
  if (status !== undefined) return status === 'BEHIND' || status === 'IDENTICAL';
  const isUnknown = errors.some(({ type, path }) => type === 'NOT_FOUND' && path?.includes('compare'));
  return isUnknown && !was ? false : undefined;
}

/** One request each. A blob that is listed and not there was collected after a force-push: the listing is out of date. */
async function* singly(
  wanted: readonly Entry[],
  { client, owner, name, address, signal }: Batches,
): AsyncIterable<Blob> {
  for (const { sha } of wanted) {
    const params = { owner, repo: name, sha };
    try {
      yield { sha, bytes: await client.bytes('/repos/{owner}/{repo}/git/blobs/{sha}', { params, signal }) };
    } catch (error) {
      if (!(error instanceof ReeveError) || error.code !== 'SOURCE_MISSING') throw error;
      const details = { source: address, expected: `blob ${sha}`, actual: 'nothing' };
      throw new ReeveError('SOURCE_MOVED', details, { cause: error });
    }
  }
}
