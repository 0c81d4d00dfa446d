import { ReeveError, reason } from '../errors.ts';

export interface GithubFetchOptions {
  readonly fetch: typeof globalThis.fetch;
  /** The API's own address: the token goes nowhere else. */
  readonly apiUrl: string;
  readonly source: string;
  readonly timeoutMs: number;
  /** Told of every answer, also of redirects. */
  readonly onAnswer: (response: Response) => void;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MOST_REDIRECTS = 4;

/**
 * A fetch that follows redirects itself: to another host (archives live there) without the token and only by HTTPS where
 * the API itself uses it; and that gives up after a while.
 */
export function githubFetch({ fetch, apiUrl, source, timeoutMs, onAnswer }: GithubFetchOptions): typeof fetch {
  const home = new URL(apiUrl);
  return async (input, init = {}) => {
    let url = new URL(input instanceof Request ? input.url : input);
    let headers = new Headers(init.headers);
    const late = AbortSignal.timeout(timeoutMs);
    const signal = init.signal ? AbortSignal.any([init.signal, late]) : late;
    for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
      const response = await fetch(url, { ...init, headers, signal, redirect: 'manual' });
      onAnswer(response);
      const location = response.headers.get('location');
      if (!REDIRECTS.has(response.status) || !location) return response;
      await response.body?.cancel();
      url = new URL(location, url);
      if (url.protocol !== 'https:' && home.protocol === 'https:')
        throw refused(source, `a redirect to ${url.protocol}`);
      if (url.host !== home.host) headers = withoutToken(headers);
    }
    throw refused(source, 'too many redirects');
  };
}

function withoutToken(headers: Headers): Headers {
  const bare = new Headers(headers);
  bare.delete('authorization');
  bare.delete('cookie');
  return bare;
}

const refused = (source: string, problem: string) => new ReeveError('SOURCE_UNREACHABLE', { source, problem });

/** Network trouble of whatever kind, in one line: fetch hides the reason in its cause. */
export const networkProblem = (error: unknown): string =>
  error instanceof Error && error.cause ? reason(error.cause) : reason(error);
