import { ReeveError } from '../errors.ts';
import { archivedBlobs } from './github-archive.ts';
import { type Batches, batchedBlobs, relationOf } from './github-blobs.ts';
import type { GithubClient } from './github-client.ts';
import { refusal } from './github-faults.ts';
import { COMMIT, committed, RESOLVE, repositoryAnswer, resolved } from './github-queries.ts';
import { listTree } from './github-tree.ts';
import type { Blob, Entry, Head, ReadQuestion, Source } from './source.ts';

export interface GithubSourceOptions {
  readonly client: GithubClient;
  /** OWNER/NAME */
  readonly repo: string;
  /** Default: the default branch, whatever its name. */
  readonly branch?: string | undefined;
  readonly address: string;
}

/** More files than this are cheaper to fetch all at once, if the whole is not much larger than what is wanted. */
const ARCHIVE_FROM = 100;
const ARCHIVE_BYTES = 32 * 2 ** 20;
const ARCHIVE_SURPLUS = 8;

/**
 * A repository on GitHub. An unchanged poll is one conditional request that costs no quota; a change is the head, the
 * tree and the missing blobs by the batch; the first sync is an archive. The repository is known by its number, so that
 * a name which somebody else took over is noticed.
 */
export function githubSource({ client, repo, branch, address }: GithubSourceOptions): Source {
  const [owner = '', name = ''] = repo.split('/');
  const params = { owner, repo: name };
  const ref = branch ? `refs/heads/${branch}` : '';
  /** What the last batch told besides blobs. */
  const confirmed = new Map<string, { readonly descends: boolean | undefined }>();

  async function resolve(signal: AbortSignal) {
    const variables = { owner, name, ref, named: branch !== undefined };
    const { data, errors } = await client.graphql(RESOLVE, variables, signal);
    const repository = resolved.safeParse(data).data?.repository;
    if (!repository) throw refusal(address, errors);
    const found = repository.ref ?? repository.defaultBranchRef;
    if (!found) {
      if (repository.isEmpty) throw new ReeveError('SOURCE_EMPTY', { source: address });
      throw new ReeveError('SOURCE_MISSING', { source: address, problem: `there is no branch ${branch}` });
    }
    return { commit: found.target.oid, branch: found.name, repository };
  }

  async function firstHead(identity: string | undefined, signal: AbortSignal): Promise<Head> {
    if (!client.isLoggedIn) return anonymousHead(identity, signal);
    const { commit, repository } = await resolve(signal);
    checkIdentity(address, identity, String(repository.databaseId));
    return { outcome: 'at', commit, identity: String(repository.databaseId) };
  }

  /** GraphQL wants a login. */
  async function anonymousHead(identity: string | undefined, signal: AbortSignal): Promise<Head> {
    const { id } = await client.json('/repos/{owner}/{repo}', (answer) => repositoryAnswer.parse(answer), {
      params,
      signal,
    });
    checkIdentity(address, identity, String(id));
    return { ...(await conditionalHead(undefined, signal)), identity: String(id) } as Head;
  }

  /** The commit's own SHA serves as the entity tag; unlike others it outlives the token. */
  async function conditionalHead(known: string | undefined, signal: AbortSignal): Promise<Head> {
    const said = await client.text('/repos/{owner}/{repo}/commits/{ref}', {
      params: { ...params, ref: branch ? `heads/${branch}` : 'HEAD' },
      accept: 'application/vnd.github.sha',
      etag: known,
      signal,
    });
    if (said === undefined) return { outcome: 'unchanged' };
    const commit = said.trim();
    if (!/^[0-9a-f]{40,64}$/.test(commit))
      throw new ReeveError('SOURCE_UNREACHABLE', { source: address, problem: 'the answer is no commit' });
    return commit === known ? { outcome: 'unchanged' } : { outcome: 'at', commit };
  }

  async function* read(commit: string, wanted: readonly Entry[], ask: ReadQuestion): AsyncIterable<Blob> {
    const { identity, previous, signal } = ask;
    const open = new Map(wanted.map((entry) => [entry.sha, entry]));
    if (isArchiveWorthIt(wanted, ask.totalBytes)) {
      for await (const blob of archivedBlobs({ client, params, commit, wanted, address, signal })) {
        if (open.delete(blob.sha)) yield blob;
      }
    }
    if (open.size === 0) return;
    const batches: Batches = { client, owner, name, ref, previous, address, signal, onAnswer };
    yield* batchedBlobs([...open.values()], batches);

    function onAnswer(answer: { readonly identity: string; readonly descends: boolean | undefined }): void {
      checkIdentity(address, identity, answer.identity);
      if (!confirmed.has(commit)) confirmed.set(commit, { descends: answer.descends });
    }
  }

  return {
    kind: 'github',
    address,
    head: ({ known, identity, signal }) => (known ? conditionalHead(known, signal) : firstHead(identity, signal)),
    list: async (commit, signal) => ({ commit, entries: await listTree({ client, params, address, signal }, commit) }),
    read,
    async confirm(commit, { identity, previous, signal }) {
      const told = confirmed.get(commit);
      confirmed.clear();
      if (told) return told;
      if (!client.isLoggedIn || !(identity || previous)) return { descends: undefined };
      const answer = await relationOf({ client, owner, name, ref, previous, address, signal });
      checkIdentity(address, identity, answer.identity);
      return { descends: answer.descends };
    },
    async write({ files, expected, message }, signal) {
      if (!client.isLoggedIn)
        throw new ReeveError('SOURCE_READ_ONLY', { source: address, problem: 'it needs a token' });
      const { branch: branchName, repository, commit: actual } = await resolve(signal);
      if (repository.isArchived)
        throw new ReeveError('SOURCE_READ_ONLY', { source: address, problem: 'it is archived' });
      if (actual !== expected) throw new ReeveError('SOURCE_MOVED', { source: address, expected, actual });
      const all = [...files];
      const additions = all.flatMap(([path, bytes]) =>
        bytes ? [{ path, contents: Buffer.from(bytes).toString('base64') }] : [],
      );
      const deletions = all.flatMap(([path, bytes]) => (bytes ? [] : [{ path }]));
      const [headline = message, ...body] = message.split('\n');
      const input = {
        branch: { repositoryNameWithOwner: repository.nameWithOwner, branchName },
        expectedHeadOid: expected,
        message: { headline, body: body.join('\n').trim() },
        fileChanges: { additions, deletions },
      };
      const { data, errors } = await client.graphql(COMMIT, { input }, signal);
      const made = committed.safeParse(data).data?.createCommitOnBranch;
      if (made) return { commit: made.commit.oid };
      if (errors.some(({ type }) => type === 'STALE_DATA' || type === 'UNPROCESSABLE')) {
        throw new ReeveError('SOURCE_MOVED', { source: address, expected, actual: (await resolve(signal)).commit });
      }
      throw refusal(address, errors);
    },
  };
}

const isArchiveWorthIt = (wanted: readonly Entry[], totalBytes: number | undefined): boolean => {
  if (wanted.length <= ARCHIVE_FROM || totalBytes === undefined) return false;
  const wantedBytes = wanted.reduce((sum, { size }) => sum + size, 0);
  return totalBytes <= Math.max(ARCHIVE_BYTES, ARCHIVE_SURPLUS * wantedBytes);
};

function checkIdentity(source: string, expected: string | undefined, actual: string): void {
  if (expected !== undefined && expected !== actual)
    throw new ReeveError('SOURCE_REPLACED', { source, expected, actual });
}
