import { once } from 'node:events';
import { asReeveError, ReeveError, reason } from '../errors.ts';
import { commitFiles } from './git-commit.ts';
import { GitFailure, type GitSurroundings, git, gitProcess, gitText } from './run-git.ts';
import type { Blob, Entry, Source } from './source.ts';

export interface GitSourceOptions {
  /** A clone or a bare repository on this machine. */
  readonly dir: string;
  /** Default: what HEAD points to. */
  readonly branch?: string | undefined;
  readonly surroundings: GitSurroundings;
}

/** Reads a repository on this machine through the git program itself, so that every format git knows works. */
export function gitSource({ dir, branch, surroundings }: GitSourceOptions): Source {
  const address = `${dir}${branch ? `@${branch}` : ''}`;
  const ref = branch ? `refs/heads/${branch}` : 'HEAD';
  const call = (args: readonly string[], signal?: AbortSignal) => ({ dir, surroundings, args, signal });
  const head = (signal: AbortSignal) => gitText(call(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`], signal));

  const explained = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      signal.throwIfAborted();
      throw await explain(error);
    }
  };
  const explain = async (error: unknown): Promise<ReeveError> => {
    if (error instanceof ReeveError) return error;
    if (!(error instanceof GitFailure)) {
      return new ReeveError('ASSETS_UNREADABLE', { path: dir, problem: `git: ${reason(error)}` }, { cause: error });
    }
    const broken = await git(call(['rev-parse', '--git-dir'])).then(
      () => undefined,
      (failure: unknown) => reason(failure),
    );
    if (broken) return new ReeveError('ASSETS_UNREADABLE', { path: dir, problem: broken }, { cause: error });
    const hasCommits = (await gitText(call(['rev-list', '--all', '--max-count=1'])).catch(() => '')) !== '';
    if (!hasCommits) return new ReeveError('SOURCE_EMPTY', { source: address }, { cause: error });
    return new ReeveError('SOURCE_MISSING', { source: address, problem: reason(error) }, { cause: error });
  };

  return {
    kind: 'git',
    address,
    async head({ known, signal }) {
      const commit = await explained(head(signal), signal);
      return commit === known ? { outcome: 'unchanged' } : { outcome: 'at', commit };
    },
    async list(commit, signal) {
      const args = ['ls-tree', '-r', '-z', '-l', '--full-tree', commit];
      const entries = parseTree(await explained(git(call(args, signal)), signal));
      return { commit, entries };
    },
    read: (_commit, wanted, { signal }) => readBlobs(wanted, call(['cat-file', '--batch'], signal), explain),
    async confirm(commit, { previous, signal }) {
      if (!previous) return { descends: undefined };
      return git(call(['merge-base', '--is-ancestor', previous, commit], signal)).then(
        () => ({ descends: true }),
        () => ({ descends: false }),
      );
    },
    write: (change, signal) => explained(commitFiles({ dir, surroundings, ref, address, change, signal }), signal),
  };
}

/** `MODE SP TYPE SP SHA SP+ SIZE TAB PATH NUL`; a submodule has the size "-". */
function parseTree(output: Buffer): Entry[] {
  const lines = output.toString().split('\0');
  lines.pop();
  return lines.map((line) => {
    const tab = line.indexOf('\t');
    const [mode = '', , sha = '', size = '-'] = line.slice(0, tab).split(/ +/);
    return { path: line.slice(tab + 1), mode, sha, size: size === '-' ? 0 : Number(size) };
  });
}

const NEWLINE = 10;

/** Asks one git for all of them: `SHA SP TYPE SP SIZE LF CONTENT LF` each, or `SHA SP missing LF`. */
async function* readBlobs(
  wanted: readonly Entry[],
  call: Parameters<typeof gitProcess>[0],
  explain: (error: unknown) => Promise<ReeveError>,
): AsyncIterable<Blob> {
  if (wanted.length === 0) return;
  const child = gitProcess(call);
  const failed = once(child, 'error').then(async ([error]) => Promise.reject(await explain(error)));
  // Rejections are seen where the output ends early.
  failed.catch(() => {});
  child.stdin.on('error', () => {});
  child.stdin.end(wanted.map(({ sha }) => `${sha}\n`).join(''));
  let rest: Buffer = Buffer.alloc(0);
  let delivered = 0;
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        const [sha = '', type, size] = rest.subarray(0, end).toString().split(' ');
        const length = type === 'missing' ? -1 : Number(size);
        if (rest.length < end + 1 + length + 1) break;
        if (type === 'blob') yield { sha, bytes: rest.subarray(end + 1, end + 1 + length) };
        rest = rest.subarray(end + 1 + length + 1);
        delivered++;
      }
    }
    if (delivered < wanted.length) {
      call.signal?.throwIfAborted();
      await Promise.race([failed, Promise.reject(new GitFailure(call.args, child.exitCode, 'git ended early'))]).catch(
        async (error: unknown) => Promise.reject(asReeveError(await explain(error))),
      );
    }
  } finally {
    child.kill();
  }
}
