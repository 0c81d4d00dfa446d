import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Contents by path; undefined deletes. A value with a mode is a link or an executable. */
export type Files = Readonly<
  Record<string, string | Uint8Array | { readonly mode: string; readonly content: string } | undefined>
>;

/** A real bare repository for a test. Commits are made with git's own plumbing, without a working tree. */
export interface GitRepo extends AsyncDisposable {
  readonly dir: string;
  readonly branch: string;
  /** Applies the files on top of the branch and returns the commit. */
  commit(
    files: Files,
    options?: { readonly message?: string; readonly on?: string | undefined; readonly branch?: string },
  ): string;
  head(branch?: string): string;
  /** Moves the branch to any commit, as a force-push does. */
  forcePush(commit: string, branch?: string): void;
  git(args: readonly string[], input?: string | Uint8Array): string;
  bytes(args: readonly string[]): Buffer;
  run(args: readonly string[]): Promise<Buffer>;
}

const PERSON = {
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
  GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z',
  GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z',
};

export async function makeGitRepo(branch = 'main'): Promise<GitRepo> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-repo-'));
  const env = { PATH: process.env.PATH, HOME: dir, ...PERSON };
  const bytes = (args: readonly string[], input?: string | Uint8Array) =>
    execFileSync('git', ['-C', dir, ...args], { env, input, maxBuffer: 2 ** 28, stdio: ['pipe', 'pipe', 'pipe'] });
  const git = (args: readonly string[], input?: string | Uint8Array) => bytes(args, input).toString().trim();
  git(['init', '--bare', '--quiet', `--initial-branch=${branch}`]);
  const head = (name = branch) => {
    try {
      return git(['rev-parse', '--verify', '--quiet', `refs/heads/${name}`]);
    } catch {
      return '';
    }
  };
  let commits = 0;
  return {
    dir,
    branch,
    head,
    git,
    bytes,
    run: async (args) =>
      (await run('git', ['-C', dir, ...args], { env, encoding: 'buffer', maxBuffer: 2 ** 28 })).stdout,
    forcePush: (commit, name = branch) => void git(['update-ref', `refs/heads/${name}`, commit]),
    commit(files, { message = `change ${++commits}`, branch: name = branch, on = head(name) } = {}) {
      const stream: (string | Uint8Array)[] = [
        `commit refs/heads/${name}\ncommitter Ann <ann@example.com> ${1767225600 + ++commits} +0000\n`,
      ];
      stream.push(`data ${Buffer.byteLength(message)}\n${message}\n`);
      stream.push(on ? `from ${on}\n` : 'deleteall\n');
      for (const [path, value] of Object.entries(files)) stream.push(...instruction(path, value));
      stream.push('\n');
      const whole = Buffer.concat(stream.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
      git(['fast-import', '--quiet', '--force'], whole);
      return head(name);
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

const quoted = (path: string) => `"${path.replace(/["\\\n]/g, (mark) => (mark === '\n' ? '\\n' : `\\${mark}`))}"`;

function instruction(path: string, value: Files[string]): (string | Uint8Array)[] {
  if (value === undefined) return [`D ${quoted(path)}\n`];
  if (typeof value === 'object' && 'mode' in value && value.mode === '160000') {
    return [`M 160000 ${value.content} ${quoted(path)}\n`];
  }
  const { mode, content } = typeof value === 'object' && 'mode' in value ? value : { mode: '100644', content: value };
  const bytes = Buffer.from(content as string);
  return [`M ${mode} inline ${quoted(path)}\ndata ${bytes.byteLength}\n`, bytes, '\n'];
}
