import { ReeveError } from '../errors.ts';
import type { GithubClient } from './github-client.ts';
import { readTree, type TreeItem } from './github-queries.ts';
import type { Entry } from './source.ts';

export interface TreeOptions {
  readonly client: GithubClient;
  readonly params: { readonly owner: string; readonly repo: string };
  readonly address: string;
  readonly signal: AbortSignal;
}

/** More folders than this means a repository that nobody should mirror by its API. */
const MOST_FOLDERS = 5_000;

/**
 * Everything at a commit. One request where GitHub sends the whole tree; where it cuts the answer short, folder by
 * folder, and a folder whose own listing is cut fails the sync: what is not listed would count as deleted.
 */
export async function listTree(options: TreeOptions, commit: string): Promise<Entry[]> {
  const whole = await tree(options, commit, true);
  if (!whole.truncated) return entriesOf(whole.tree, '');
  const entries: Entry[] = [];
  const folders: { path: string; sha: string }[] = [{ path: '', sha: whole.sha }];
  for (let asked = 0; folders.length > 0; asked++) {
    if (asked > MOST_FOLDERS) throw incomplete(options, `it has more than ${MOST_FOLDERS} folders`);
    const { path, sha } = folders.shift()!;
    // A subtree may still fit into one answer; only the root is known not to.
    const inner = asked === 0 ? await tree(options, sha, false) : await tree(options, sha, true);
    if (inner.truncated && asked > 0) {
      const flat = await tree(options, sha, false);
      if (flat.truncated) throw incomplete(options, `the folder ${path} is too large to list`);
      open(flat.tree, path);
    } else if (asked === 0) open(inner.tree, path);
    else entries.push(...entriesOf(inner.tree, path));
  }
  return entries;

  function open(items: readonly TreeItem[], path: string): void {
    entries.push(...entriesOf(items, path));
    for (const item of items) if (item.type === 'tree') folders.push({ path: below(path, item.path), sha: item.sha });
  }
}

const tree = ({ client, params, signal }: TreeOptions, sha: string, recursive: boolean) =>
  client.json(`/repos/{owner}/{repo}/git/trees/{sha}${recursive ? '?recursive=1' : ''}`, readTree, {
    params: { ...params, sha },
    signal,
  });

const below = (folder: string, name: string): string => (folder ? `${folder}/${name}` : name);

const entriesOf = (items: readonly TreeItem[], folder: string): Entry[] =>
  items
    .filter(({ type }) => type !== 'tree')
    .map(({ path, mode, sha, size = 0 }) => ({ path: below(folder, path), mode, sha, size }));

const incomplete = ({ address }: TreeOptions, problem: string) =>
  new ReeveError('SOURCE_UNREACHABLE', { source: address, problem: `the listing is incomplete: ${problem}` });
