import { z } from 'zod';
import { pacedMap } from '../registry/pace.ts';

/** Everything reeve asks of GitHub's GraphQL interface. Values travel as variables, never inside the text. */

const REPOSITORY = 'databaseId nameWithOwner isArchived isEmpty';

/** Which repository this is and where its branch stands. An empty branch name means the default branch. */
export const RESOLVE = `query ($owner: String!, $name: String!, $ref: String!, $named: Boolean!) {
  repository(owner: $owner, name: $name) {
    ${REPOSITORY}
    defaultBranchRef @skip(if: $named) { name target { oid } }
    ref(qualifiedName: $ref) @include(if: $named) { name target { oid } }
  }
}`;

const branch = z.object({ name: z.string(), target: z.object({ oid: z.string() }) }).nullish();
export const resolved = z.object({
  repository: z
    .object({
      databaseId: z.int(),
      nameWithOwner: z.string(),
      isArchived: z.boolean(),
      isEmpty: z.boolean(),
      defaultBranchRef: branch,
      ref: branch,
    })
    .nullable(),
});

/**
 * Many blobs at once, each under its own alias: GitHub counts that as one request. The first batch of a read also asks
 * whether this is still the same repository, and how the commit is related to the one before.
 */
export function blobsQuery(count: number, relation: { readonly named: boolean } | undefined): string {
  const blobs = Array.from({ length: count }, (_, at) => at);
  const variables = blobs.map((at) => `, $b${at}: GitObjectID!`).join('');
  const fields = blobs.map((at) => `b${at}: object(oid: $b${at}) { ... on Blob { text isBinary isTruncated } }`);
  const ref = relation?.named ? 'ref(qualifiedName: $ref)' : 'ref: defaultBranchRef';
  const compared = relation
    ? [`${ref} { compare(headRef: $previous) { status } }`, 'was: object(oid: $was) { oid }']
    : [];
  const asked = relation ? `${relation.named ? ', $ref: String!' : ''}, $previous: String!, $was: GitObjectID!` : '';
  return `query ($owner: String!, $name: String!${asked}${variables}) {
  repository(owner: $owner, name: $name) {
    databaseId
    ${[...compared, ...fields].join('\n    ')}
  }
}`;
}

const blob = z.object({
  text: z.string().nullish(),
  isBinary: z.boolean().nullish(),
  isTruncated: z.boolean().optional(),
});
export const blobsAnswer = z.object({
  repository: z
    .object({
      databaseId: z.int(),
      ref: z.object({ compare: z.object({ status: z.string() }).nullish() }).nullish(),
      was: z.object({ oid: z.string() }).nullish(),
    })
    .catchall(blob.nullish())
    .nullish(),
});

/** One commit with all its files, refused unless the branch is where it was expected. */
export const COMMIT = `mutation ($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}`;

export const committed = z.object({
  createCommitOnBranch: z.object({ commit: z.object({ oid: z.string() }) }).nullish(),
});

/** The little we need of GET /repos/{owner}/{repo}. */
export const repositoryAnswer = z.object({ id: z.int() });

const treeAnswer = z.object({ sha: z.string(), truncated: z.boolean(), tree: z.array(z.unknown()) });
const treeItem = z.object({
  path: z.string(),
  mode: z.string(),
  type: z.enum(['blob', 'tree', 'commit']),
  sha: z.string(),
  size: z.int().optional(),
});
export type TreeItem = z.output<typeof treeItem>;

/** A tree may have a hundred thousand items: they are checked a stretch at a time. */
export async function readTree(answer: unknown) {
  const { sha, truncated, tree } = treeAnswer.parse(answer);
  return { sha, truncated, tree: await pacedMap(tree, (item) => treeItem.parse(item)) };
}
