import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/core';
import { backOff, type Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import { faultOf, type GraphqlError } from './github-faults.ts';
import { githubFetch, networkProblem } from './github-fetch.ts';

/** How reeve logs in: not at all, with a token, or as an installed GitHub App. */
export type GithubLogin =
  | { readonly token?: string | undefined }
  | { readonly appId: string; readonly privateKey: string; readonly installationId: string };

export interface GithubClientOptions {
  readonly apiUrl: string;
  readonly login: GithubLogin;
  readonly source: string;
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly timeoutMs?: number | undefined;
}

/** What is left of an hour's requests, as the last answer said. */
export interface Quota {
  readonly resource: string;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: number;
}

export interface GithubClient {
  readonly isLoggedIn: boolean;
  /** By resource: 'core' for REST, 'graphql'. */
  quotas(): readonly Quota[];
  /** The plain text of an answer; undefined for 304. */
  text(
    path: string,
    ask: Ask & { readonly accept: string; readonly etag?: string | undefined },
  ): Promise<string | undefined>;
  /** What `read` makes of a JSON answer; if it throws, the answer counts as torn. */
  json<T>(path: string, read: (answer: unknown) => T | Promise<T>, ask: Ask): Promise<T>;
  /** One page of a list as it came, and the cursor of the next. Its link is not followed: it could lead anywhere. */
  page(path: string, ask: Ask): Promise<{ readonly text: string; readonly cursor?: string | undefined }>;
  /** Asks GitHub to do something. Not repeated by itself. */
  post(path: string, ask: Ask): Promise<void>;
  bytes(path: string, ask: Ask): Promise<Uint8Array>;
  stream(path: string, ask: Ask): Promise<AsyncIterable<Uint8Array>>;
  /** What came, and what was said to be wrong with it: both at once is normal. */
  graphql(query: string, variables: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<GraphqlAnswer>;
}

interface Ask {
  readonly params: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface GraphqlAnswer {
  readonly data: unknown;
  readonly errors: readonly GraphqlError[];
}

const API_VERSION = '2022-11-28';
const TIMEOUT_MS = 30_000;
const TRIES = 3;

/** Octokit without its retries and throttles: when to ask again is decided in one place, by the state of the source. */
export function githubClient(options: GithubClientOptions): GithubClient {
  const { apiUrl, login, source, clock, timeoutMs = TIMEOUT_MS } = options;
  const baseUrl = apiUrl.replace(/\/$/, '');
  const quotas = new Map<string, Quota>();
  const octokit = new Octokit({
    baseUrl,
    userAgent: 'reeve',
    ...auth(login),
    request: {
      fetch: githubFetch({
        fetch: options.fetch,
        apiUrl,
        source,
        timeoutMs,
        onAnswer: ({ headers }) => {
          const quota = quotaOf(headers);
          if (quota) quotas.set(quota.resource, quota);
        },
      }),
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });

  /** One request; the body is left to whoever asked. Octokit would read a large one with a slow parser. */
  async function send(
    route: string,
    parameters: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<Answer | undefined> {
    try {
      const answer = await octokit.request(route, {
        ...parameters,
        request: { signal, parseSuccessResponseBody: false },
      });
      return { body: answer.data as AsyncIterable<Uint8Array>, headers: answer.headers as Answer['headers'] };
    } catch (error) {
      signal.throwIfAborted();
      const { status, response } = error as { status?: number; response?: { headers: Record<string, string> } };
      if (status === 304) return undefined;
      if (response && status !== undefined) {
        const { headers } = response;
        throw faultOf({ source, status, headers, message: reason(error), now: clock.now() });
      }
      const refused = error instanceof Error && error.cause instanceof ReeveError ? error.cause : undefined;
      throw (
        refused ?? new ReeveError('SOURCE_UNREACHABLE', { source, problem: networkProblem(error) }, { cause: error })
      );
    }
  }

  /** Reading is harmless, so a hiccup is slept over twice. A limit or a refusal is not. */
  async function get<T>(
    path: string,
    { params, signal }: Ask,
    headers: Record<string, string>,
    use: (answer: Answer) => Promise<T>,
  ) {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await send(
          `GET ${path}`,
          { ...params, headers: { 'x-github-api-version': API_VERSION, ...headers } },
          signal,
        );
        return answer && (await use(answer));
      } catch (thrown) {
        signal.throwIfAborted();
        const error = thrown instanceof ReeveError ? thrown : torn(thrown);
        if (error.code !== 'SOURCE_UNREACHABLE' || attempt + 1 >= TRIES) throw error;
        await clock.sleep(backOff(attempt, 250, 2_000), signal);
      }
    }
  }
  const torn = (error: unknown) =>
    new ReeveError(
      'SOURCE_UNREACHABLE',
      { source, problem: `a torn answer: ${networkProblem(error)}` },
      { cause: error },
    );

  return {
    isLoggedIn: !('token' in login) || login.token !== undefined,
    quotas: () => [...quotas.values()],
    text: (path, { accept, etag, ...ask }) =>
      get(path, ask, { accept, ...(etag && { 'if-none-match': `"${etag}"` }) }, async ({ body }) =>
        (await whole(body)).toString(),
      ),
    json: async (path, read, ask) =>
      (await get(path, ask, { accept: 'application/vnd.github+json' }, async ({ body }) =>
        read(JSON.parse((await whole(body)).toString())),
      ))!,
    page: async (path, ask) =>
      (await get(path, ask, { accept: 'application/vnd.github+json' }, async ({ body, headers }) => ({
        text: (await whole(body)).toString(),
        cursor: /[?&]cursor=([^&>]+)[^>]*>;\s*rel="next"/.exec(headers.link ?? '')?.[1],
      })))!,
    async post(path, { params, signal }) {
      const answer = await send(
        `POST ${path}`,
        { ...params, headers: { 'x-github-api-version': API_VERSION } },
        signal,
      );
      if (answer) await whole(answer.body).catch(() => {});
    },
    bytes: async (path, ask) =>
      (await get(path, ask, { accept: 'application/vnd.github.raw+json' }, ({ body }) => whole(body)))!,
    stream: async (path, ask) => (await get(path, ask, {}, async ({ body }) => body))!,
    async graphql(query, variables, signal) {
      const url = `${baseUrl.replace(/\/api\/v3$/, '/api')}/graphql`;
      const answer = (await send(`POST ${url}`, { query, variables }, signal))!;
      const { data, errors = [] } = await whole(answer.body)
        .then((bytes) => JSON.parse(bytes.toString()) as { data?: unknown; errors?: GraphqlAnswer['errors'] })
        .catch((error: unknown) => Promise.reject(torn(error)));
      const limited = errors.find(({ type }) => type === 'RATE_LIMITED');
      if (limited) {
        const headers = { ...answer.headers, 'x-ratelimit-remaining': '0' };
        throw faultOf({ source, status: 429, headers, message: limited.message, now: clock.now() });
      }
      return { data, errors };
    },
  };
}

interface Answer {
  readonly body: AsyncIterable<Uint8Array>;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

const auth = (login: GithubLogin) =>
  'appId' in login
    ? { authStrategy: createAppAuth, auth: { ...login, installationId: Number(login.installationId) } }
    : login.token
      ? { auth: login.token }
      : {};

async function whole(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function quotaOf(headers: Headers): Quota | undefined {
  const number = (name: string) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN);
  const [limit, remaining, reset] = [number('limit'), number('remaining'), number('reset')];
  if (!Number.isFinite(limit) || !Number.isFinite(remaining)) return undefined;
  return { resource: headers.get('x-ratelimit-resource') ?? 'core', limit, remaining, resetAt: reset * 1000 };
}
