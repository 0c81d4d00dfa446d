import { readFileSync } from 'node:fs';
import { buildSchema, GraphQLError, type GraphQLSchema, graphql } from 'graphql';
import type { GitRepo } from './git-repo.ts';

/** What the GraphQL side of the stand-in stands on. */
export interface GraphqlWorld {
  readonly repo: GitRepo;
  readonly id: () => number;
  readonly fullName: () => string;
  /** A renamed repository is found under its old name, too. */
  readonly names: () => readonly string[];
  readonly isArchived: () => boolean;
  /** Where the branch seems to be; differs from the truth while refs lag. */
  readonly headOf: (branch: string) => string;
  /** Blobs whose part of an answer is null, with an error beside it. */
  readonly brokenBlobs: ReadonlySet<string>;
  readonly failsToCompare: () => boolean;
}

interface Thing {
  readonly __typename: 'Blob' | 'Commit';
}

/** Answers with GitHub's published schema: a query that GitHub would refuse is refused here. */
export function githubGraphql(world: GraphqlWorld) {
  const schema = publishedSchema();
  const { repo } = world;

  const ref = (name: string) => {
    const oid = world.headOf(name);
    if (oid === '') return null;
    return {
      name,
      target: { __typename: 'Commit', oid },
      compare({ headRef }: { headRef: string }) {
        const isAncestor = (a: string, b: string) => succeeds(repo, ['merge-base', '--is-ancestor', a, b]);
        if (world.failsToCompare() || !succeeds(repo, ['cat-file', '-e', `${headRef}^{commit}`]))
          throw notFound(`No commit found for ${headRef}`);
        if (headRef === oid) return { status: 'IDENTICAL' };
        if (isAncestor(headRef, oid)) return { status: 'BEHIND' };
        return { status: isAncestor(oid, headRef) ? 'AHEAD' : 'DIVERGED' };
      },
    };
  };
  const object = ({ oid }: { oid: string }): Thing | null => {
    if (world.brokenBlobs.has(oid)) throw new GraphQLError('Something went wrong while executing your query.');
    if (!succeeds(repo, ['cat-file', '-e', `${oid}^{blob}`])) {
      return succeeds(repo, ['cat-file', '-e', `${oid}^{commit}`]) ? ({ __typename: 'Commit', oid } as Thing) : null;
    }
    const bytes = cat(repo, oid);
    const isBinary = bytes.includes(0);
    const isTruncated = bytes.byteLength > 512_000;
    const text = isBinary ? null : bytes.toString().slice(0, 512_000);
    return { __typename: 'Blob', oid, isBinary, isTruncated, text, byteSize: bytes.byteLength } as Thing;
  };
  const repository = ({ owner, name }: { owner: string; name: string }) => {
    if (!world.names().includes(`${owner}/${name}`))
      throw notFound(`Could not resolve to a Repository with the name '${owner}/${name}'.`);
    return {
      databaseId: world.id(),
      nameWithOwner: world.fullName(),
      isArchived: world.isArchived(),
      isEmpty: repo.head() === '',
      defaultBranchRef: () => ref(repo.branch),
      ref: ({ qualifiedName }: { qualifiedName: string }) => ref(qualifiedName.replace('refs/heads/', '')),
      object,
    };
  };
  const createCommitOnBranch = ({ input }: { input: CommitInput }) => {
    const { branchName } = input.branch;
    const head = repo.head(branchName);
    if (head !== input.expectedHeadOid) {
      throw new GraphQLError(`Expected branch to point to "${input.expectedHeadOid}" but it is at "${head}".`, {
        extensions: { type: 'STALE_DATA' },
      });
    }
    const files = Object.fromEntries([
      ...(input.fileChanges.additions ?? []).map(({ path, contents }) => [path, Buffer.from(contents, 'base64')]),
      ...(input.fileChanges.deletions ?? []).map(({ path }) => [path, undefined]),
    ]);
    const message = [input.message.headline, input.message.body].filter(Boolean).join('\n\n');
    return { commit: { __typename: 'Commit', oid: repo.commit(files, { branch: branchName, message }) } };
  };

  return async (source: string, variableValues: Record<string, unknown>) => {
    const rootValue = { repository, createCommitOnBranch };
    const { data, errors } = await graphql({ schema, source, variableValues, rootValue });
    if (!errors) return { data };
    const told = errors.map(({ message, path, extensions: { type } }) => ({
      ...(type ? { type } : {}),
      path,
      message,
    }));
    return { data, errors: told };
  };
}

/** Read once for all: it is large. */
let schemaOnce: GraphQLSchema | undefined;
function publishedSchema(): GraphQLSchema {
  const file = new URL('../../node_modules/@octokit/graphql-schema/schema.graphql', import.meta.url);
  schemaOnce ??= buildSchema(readFileSync(file, 'utf8'), { assumeValid: true });
  return schemaOnce;
}

interface CommitInput {
  readonly branch: { readonly branchName: string };
  readonly expectedHeadOid: string;
  readonly message: { readonly headline: string; readonly body?: string };
  readonly fileChanges: {
    readonly additions?: readonly { readonly path: string; readonly contents: string }[];
    readonly deletions?: readonly { readonly path: string }[];
  };
}

const notFound = (message: string) => new GraphQLError(message, { extensions: { type: 'NOT_FOUND' } });

function succeeds(repo: GitRepo, args: readonly string[]): boolean {
  try {
    repo.git(args);
    return true;
  } catch {
    return false;
  }
}

/** Bytes, where git() gives trimmed text. */
export const cat = (repo: GitRepo, oid: string): Buffer => repo.bytes(['cat-file', 'blob', oid]);
