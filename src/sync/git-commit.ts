import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ReeveError } from '../errors.ts';
import { type GitSurroundings, git, gitText } from './run-git.ts';
import type { Change, Written } from './source.ts';

export interface CommitOptions {
  readonly dir: string;
  readonly surroundings: GitSurroundings;
  /** The branch to move, or HEAD for what it points to. */
  readonly ref: string;
  readonly address: string;
  readonly change: Change;
  readonly signal: AbortSignal;
}

const AUTHOR = { name: 'reeve', email: 'reeve@localhost' };

/**
 * Makes one commit beside the working tree, from an index of its own, and moves the branch to it only if it is still
 * where it was expected: git's own compare-and-set. A checked-out branch takes its files along.
 */
export async function commitFiles({
  dir,
  surroundings,
  ref,
  address,
  change,
  signal,
}: CommitOptions): Promise<Written> {
  const { expected, files, message, author = AUTHOR } = change;
  const scratch = await mkdtemp(join(tmpdir(), 'reeve-index-'));
  const who = { GIT_AUTHOR_NAME: author.name, GIT_AUTHOR_EMAIL: author.email };
  const env = {
    ...who,
    GIT_COMMITTER_NAME: AUTHOR.name,
    GIT_COMMITTER_EMAIL: AUTHOR.email,
    GIT_INDEX_FILE: join(scratch, 'index'),
  };
  const run = (args: readonly string[], input?: Uint8Array | string) =>
    gitText({ dir, surroundings, args, input, env, signal });
  const inPlace = (args: readonly string[]) => gitText({ dir, surroundings, args, signal });
  try {
    const worktree = await checkedOut(inPlace, ref);
    if (worktree) await refuseLocalEdits(inPlace, address, [...files.keys()]);
    await run(['read-tree', expected]);
    const lines: string[] = [];
    for (const [path, bytes] of files) {
      const blob = bytes && (await run(['hash-object', '-w', '--stdin'], bytes));
      lines.push(blob ? `100644 ${blob}\t${path}\0` : `0 ${'0'.repeat(40)}\t${path}\0`);
    }
    await run(['update-index', '-z', '--index-info'], lines.join(''));
    const tree = await run(['write-tree']);
    const commit = await run(['commit-tree', tree, '-p', expected, '-F', '-'], `${message}\n`);
    await moveBranch({ dir, surroundings, ref, address, expected, commit, signal });
    if (worktree) await inPlace(['read-tree', '-m', '-u', expected, commit]);
    return { commit };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Move extends Omit<CommitOptions, 'change'> {
  readonly expected: string;
  readonly commit: string;
}

async function moveBranch({ dir, surroundings, ref, address, expected, commit, signal }: Move): Promise<void> {
  try {
    await git({ dir, surroundings, args: ['update-ref', '-m', 'reeve', ref, commit, expected], signal });
  } catch (error) {
    const actual = await gitText({ dir, surroundings, args: ['rev-parse', ref], signal }).catch(() => 'nothing');
    if (actual === expected) throw error;
    throw new ReeveError('SOURCE_MOVED', { source: address, expected, actual }, { cause: error });
  }
}

type Run = (args: readonly string[]) => Promise<string>;

/** Whether the files of this branch lie in a working tree that must follow. */
async function checkedOut(run: Run, ref: string): Promise<boolean> {
  if ((await run(['rev-parse', '--is-bare-repository'])) === 'true') return false;
  return ref === 'HEAD' || (await run(['symbolic-ref', '--quiet', 'HEAD']).catch(() => '')) === ref;
}

async function refuseLocalEdits(run: Run, source: string, paths: readonly string[]): Promise<void> {
  const edited = await run(['status', '--porcelain', '--untracked-files=all', '--', ...paths]);
  if (edited === '') return;
  throw new ReeveError('SOURCE_READ_ONLY', { source, problem: 'these files have changes that are not committed' });
}
