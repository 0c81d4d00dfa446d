import type { Clock } from '../../clock.ts';
import { reason } from '../../errors.ts';
import { type Check, fail, ok, skipped, warn } from '../doctor.ts';

export interface GithubProbe {
  readonly apiUrl: string;
  readonly repo?: string | undefined;
  readonly token?: string | undefined;
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
}

const TIMEOUT_MS = 5_000;

/** Asks GitHub about the token and the repository; both questions cost no or one unit of quota. */
export function githubCheck({ apiUrl, repo, token, clock, fetch }: GithubProbe): Check {
  const ask = (path: string) =>
    fetch(`${apiUrl.replace(/\/$/, '')}${path}`, {
      headers: {
        accept: 'application/vnd.github+json',
        'user-agent': 'reeve',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  const look = async () => {
    const limit = await ask('/rate_limit');
    if (limit.status === 401)
      return [fail('GitHub refused the token', 'Make a new one with read access to contents, and set GITHUB_TOKEN.')];
    // A GitHub of one's own may have no limits, and says so with 404.
    if (!limit.ok && limit.status !== 404)
      return [fail(`${apiUrl} answers ${limit.status}`, 'Try again later; if it lasts, check github.apiUrl.')];
    const findings = [quota(limit, await limit.json().catch(() => ({})), token !== undefined), ...skew(limit, clock)];
    if (!repo) return findings;
    const found = await ask(`/repos/${repo}`);
    return [
      ...findings,
      found.ok
        ? ok(`${repo} can be read`)
        : fail(`${repo} answers ${found.status}`, `Check the name, and that the token may read it.`),
    ];
  };
  return {
    name: 'github',
    run: async () => {
      if (!repo && !token) return [skipped('no repository is set: assets come from a local folder')];
      try {
        return await look();
      } catch (error) {
        // fetch keeps what happened in the cause.
        const why = reason(error instanceof Error ? (error.cause ?? error) : error);
        return [fail(`${apiUrl} does not answer: ${why}`, 'Check the network and github.apiUrl.')];
      }
    },
  };
}

function quota(response: Response, body: unknown, hasToken: boolean) {
  const core = (body as { resources?: { core?: { remaining?: number; limit?: number } } }).resources?.core;
  const scopes = response.headers.get('x-oauth-scopes');
  if (response.status === 404) return ok('requests are not limited');
  const says = `${core?.remaining ?? '?'} of ${core?.limit ?? '?'} requests left this hour${scopes ? `; scopes: ${scopes}` : ''}`;
  return hasToken ? ok(says) : warn(`${says}; no token`, 'Set GITHUB_TOKEN: without one the quota is 60 an hour.');
}

function skew(response: Response, clock: Clock) {
  const theirs = Date.parse(response.headers.get('date') ?? '');
  const seconds = Math.round((theirs - clock.now()) / 1000);
  if (!Number.isFinite(seconds) || Math.abs(seconds) < 30) return [];
  return [
    warn(
      `this machine's clock is ${Math.abs(seconds)} s ${seconds > 0 ? 'behind' : 'ahead'}`,
      'Run a time service: GitHub Apps refuse tokens from the wrong time.',
    ),
  ];
}
