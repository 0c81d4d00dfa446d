import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../src/clock.ts';
import { type GitRepo, makeGitRepo } from './git-repo.ts';
import { type Description, githubDescription } from './github-description.ts';
import { cat, githubGraphql } from './github-graphql.ts';

/** One request that reached the stand-in. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  /** 'api' or 'archive': the host that answers tarballs is another one. */
  readonly host: 'api' | 'archive';
  readonly status: number;
  /** Units of the hourly quota it cost. */
  readonly cost: number;
  readonly authorization: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface FaultAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Sends this much of the good answer and then cuts the connection. */
  readonly tearAfter?: number;
  /** Never answers. */
  readonly silence?: true;
}

export interface Fault extends FaultAnswer {
  /** Matched against "GET /repos/…"; default everything. */
  readonly on?: RegExp;
  /** How many requests it befalls; default all. */
  times?: number;
  /** How many matching requests pass before. */
  after?: number;
}

export interface GithubOptions {
  readonly token?: string;
  readonly name?: string;
  readonly repo?: GitRepo;
  /** Checking each answer takes time that a measurement should not pay for. */
  readonly unchecked?: boolean;
}

/** GitHub, as far as reeve asks of it: a real git repository behind the published REST and GraphQL interfaces. */
export interface GithubStandIn extends AsyncDisposable {
  readonly url: string;
  readonly repo: GitRepo;
  readonly name: string;
  readonly token: string;
  readonly seen: Seen[];
  /** What may change while it runs. */
  readonly now: {
    id: number;
    /** Under another name: the old one redirects. */
    movedTo: string | undefined;
    isArchived: boolean;
    remaining: number;
    resetAt: number;
    /** A branch seems to be here although it moved on. */
    lag: string | undefined;
    /** Recursive listings are cut after so many entries. */
    treeLimit: number;
    brokenBlobs: Set<string>;
    /** Asked how two commits are related it says that it does not know the one before. */
    failsToCompare: boolean;
    /** Webhooks of the repository; undefined: the token may not see them. */
    hooks: { id: number; url: string; active?: boolean }[] | undefined;
    /** What was sent to them, newest first. What is asked for again arrives. */
    deliveries: { id: string; guid: string; at: number; status: number; event?: string; redelivery?: boolean }[];
  };
  fault(fault: Fault): void;
  healthy(): void;
  /** A signed delivery, as GitHub sends it. */
  delivery(
    event: string,
    payload: unknown,
    secret: string,
    id?: string,
  ): { body: string; headers: Record<string, string> };
  push(commit: string, branch?: string): Record<string, unknown>;
}

const LIMIT = 5_000;

export async function startGithub({
  token = 'ghs_secret',
  name = 'acme/assets',
  repo,
  unchecked = false,
}: GithubOptions = {}): Promise<GithubStandIn> {
  const repository = repo ?? (await makeGitRepo());
  const description: Description | undefined = unchecked ? undefined : githubDescription();
  const seen: Seen[] = [];
  const faults: Fault[] = [];
  const now: GithubStandIn['now'] = {
    id: 4242,
    movedTo: undefined,
    isArchived: false,
    remaining: LIMIT,
    resetAt: Math.floor(systemClock.now() / 1000) + 3600,
    lag: undefined,
    treeLimit: 100_000,
    brokenBlobs: new Set(),
    failsToCompare: false,
    hooks: undefined,
    deliveries: [],
  };
  const headOf = (branch: string) => now.lag ?? repository.head(branch);
  const fullName = () => now.movedTo ?? name;
  const answerGraphql = githubGraphql({
    repo: repository,
    id: () => now.id,
    fullName,
    names: () => [name, fullName()],
    isArchived: () => now.isArchived,
    headOf,
    brokenBlobs: now.brokenBlobs,
    failsToCompare: () => now.failsToCompare,
  });
  const stolen = new Set<string>();
  const url = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const archive = createServer((request, response) => {
    void (async () => {
      seen.push(record(request, 'archive', 200, 0));
      if (request.headers.authorization) stolen.add(request.headers.authorization);
      const commit = request.url!.split('/').at(-1)!;
      const prefix = `${name.replace('/', '-')}-${commit.slice(0, 7)}/`;
      const bytes = await repository.run(['archive', '--format=tar.gz', `--prefix=${prefix}`, commit]);
      const fault = strike(faults, `ARCHIVE ${request.url}`);
      send(response, { status: 200, headers: { 'content-type': 'application/x-gzip' }, body: bytes }, fault);
    })();
  });
  const api = createServer((request, response) => void answer(request, response));

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const fault = strike(faults, `${request.method} ${request.url}`);
    let reply: Reply;
    try {
      reply = await route(request, Buffer.concat(chunks).toString());
    } catch (error) {
      reply = json(500, { message: String(error) });
    }
    const cost = reply.status === 304 || fault ? 0 : (reply.cost ?? 1);
    now.remaining -= cost;
    if (reply.template && description) {
      const body = reply.headers?.['content-type']?.startsWith('application/json')
        ? JSON.parse(String(reply.body))
        : undefined;
      description.check(request.method!, reply.template, reply.status, reply.headers?.['content-type'], body);
    }
    const status = fault?.status ?? reply.status;
    seen.push(record(request, 'api', status, cost));
    const limits = {
      date: new Date(systemClock.now()).toUTCString(),
      'x-ratelimit-limit': String(LIMIT),
      'x-ratelimit-remaining': String(now.remaining),
      'x-ratelimit-reset': String(now.resetAt),
      'x-ratelimit-resource': request.url === '/graphql' ? 'graphql' : 'core',
    };
    send(response, { ...reply, headers: { ...limits, ...reply.headers } }, fault);
  }

  async function route(request: IncomingMessage, body: string): Promise<Reply> {
    const { pathname, searchParams } = new URL(request.url!, 'http://stand.in');
    const { authorization, accept = '', 'if-none-match': etag } = request.headers;
    const isLoggedIn = authorization === `token ${token}` || authorization === `bearer ${token}`;
    if (pathname === '/app/installations/7/access_tokens') {
      if (!authorization?.startsWith('bearer ey'))
        return json(401, { message: 'A JSON web token could not be decoded' });
      const made = { token, expires_at: '2099-01-01T00:00:00Z', permissions: { contents: 'write' } };
      return { ...json(201, made), template: '/app/installations/{installation_id}/access_tokens' };
    }
    if (authorization && !isLoggedIn)
      return json(401, { message: 'Bad credentials', documentation_url: 'https://docs.github.com/rest' });
    if (pathname === '/graphql') {
      if (!isLoggedIn) return json(401, { message: 'This endpoint requires you to be authenticated.' });
      const { query, variables } = JSON.parse(body) as { query: string; variables: Record<string, unknown> };
      return { ...json(200, await answerGraphql(query, variables)), cost: 0 };
    }
    const [, owner, repoName, rest = ''] = /^\/repos\/([^/]+)\/([^/]+)(.*)$/.exec(pathname) ?? [];
    const asked = `${owner}/${repoName}`;
    const template = '/repos/{owner}/{repo}';
    if (asked === name && now.movedTo) {
      const location = `${url(api)}/repos/${now.movedTo}${rest}${searchParams.size > 0 ? `?${searchParams.toString()}` : ''}`;
      return {
        ...json(301, { message: 'Moved Permanently', url: location }),
        headers: { location, 'content-type': 'application/json' },
      };
    }
    if (asked !== fullName()) return { ...json(404, NOT_FOUND), template };
    if (rest === '') return { ...json(200, wholeRepository(description, now.id, asked, repository.branch)), template };
    const part = (pattern: RegExp) => decodeURIComponent(pattern.exec(rest)?.[1] ?? '');
    const commitRef = part(/^\/commits\/(.+)$/);
    if (commitRef) return headAnswer(commitRef, accept, etag);
    if (rest.startsWith('/hooks')) return hooksAnswer(request.method!, rest, searchParams);
    if (repository.head() === '')
      return { ...json(409, { message: 'Git Repository is empty.' }), template: `${template}/git/trees/{tree_sha}` };
    const tree = part(/^\/git\/trees\/(.+)$/);
    if (tree) return treeAnswer(tree, searchParams.has('recursive'));
    const blob = part(/^\/git\/blobs\/(.+)$/);
    if (blob) return blobAnswer(blob, accept);
    const tarball = part(/^\/tarball\/(.+)$/);
    if (tarball)
      return {
        status: 302,
        headers: { location: `${url(archive)}/${asked}/legacy.tar.gz/${tarball}` },
        body: '',
        template: `${template}/tarball/{ref}`,
      };
    return json(404, NOT_FOUND);
  }

  function headAnswer(asked: string, accept: string, etag: string | undefined): Reply {
    const template = '/repos/{owner}/{repo}/commits/{ref}';
    if (repository.head() === '') return { ...json(409, { message: 'Git Repository is empty.' }), template };
    const commit = headOf(asked === 'HEAD' ? repository.branch : asked.replace(/^heads\//, ''));
    if (commit === '') return { ...json(422, { message: `No commit found for SHA: ${asked}` }), template };
    if (!accept.includes('sha')) throw new Error('only the sha media type is played');
    const headers = { etag: `"${commit}"`, 'content-type': 'application/vnd.github.sha; charset=utf-8' };
    if (etag === `"${commit}"`) return { status: 304, headers: { etag: `"${commit}"` }, body: '', template };
    return { status: 200, headers, body: commit, template };
  }

  async function treeAnswer(sha: string, isRecursive: boolean): Promise<Reply> {
    const template = '/repos/{owner}/{repo}/git/trees/{tree_sha}';
    const args = ['ls-tree', '-z', '-l', ...(isRecursive ? ['-r', '-t'] : []), '--full-tree', sha];
    const output = await repository.run(args).catch(() => undefined);
    if (!output) return { ...json(404, NOT_FOUND), template };
    const entries = output.toString().split('\0').slice(0, -1).map(treeItem);
    const truncated = isRecursive && entries.length > now.treeLimit;
    const root = repository.git(['rev-parse', `${sha}^{tree}`]);
    const tree = truncated ? entries.slice(0, now.treeLimit) : entries;
    return { ...json(200, { sha: root, url: `${url(api)}/trees/${root}`, tree, truncated }), template };
  }

  function hooksAnswer(method: string, rest: string, asked: URLSearchParams): Reply {
    const [, , hook, , delivery] = rest.split('/');
    const template = '/repos/{owner}/{repo}/hooks';
    if (!now.hooks) return { ...json(404, NOT_FOUND), template };
    if (!hook) {
      const items = now.hooks.map(({ id, url: address, active = true }) => ({
        ...(description?.example('hook-items') as unknown as object[] | undefined)?.[0],
        id,
        active,
        config: { content_type: 'json', insecure_ssl: '0', url: address },
      }));
      return { ...json(200, items), template };
    }
    if (method === 'POST') {
      const again = now.deliveries.find(({ id }) => id === delivery)!;
      now.deliveries.unshift({ ...again, id: `${again.id}9`, status: 202, redelivery: true, at: systemClock.now() });
      return { ...json(202, {}), template: `${template}/{hook_id}/deliveries/{delivery_id}/attempts` };
    }
    const from = Number(asked.get('cursor') ?? 0);
    const size = Number(asked.get('per_page') ?? 30);
    const items = now.deliveries.slice(from, from + size).map((one) => ({
      id: one.id,
      guid: one.guid,
      delivered_at: new Date(one.at).toISOString(),
      redelivery: one.redelivery ?? false,
      duration: 0.1,
      status: one.status < 300 ? 'OK' : 'failed to connect',
      status_code: one.status,
      event: one.event ?? 'push',
      action: null,
      installation_id: null,
      repository_id: now.id,
    }));
    const { headers, body, ...reply } = json(200, items);
    // Longer numbers than this language writes.
    const exact = String(body).replace(/"id":"(\d+)"/g, '"id":$1');
    const link = `<${url(archive)}${template}?per_page=${size}&cursor=${from + size}>; rel="next"`;
    const isMore = now.deliveries.length > from + size;
    return {
      ...reply,
      body: exact,
      headers: { ...headers, ...(isMore && { link }) },
      template: `${template}/{hook_id}/deliveries`,
    };
  }

  function blobAnswer(sha: string, accept: string): Reply {
    const template = '/repos/{owner}/{repo}/git/blobs/{file_sha}';
    let bytes: Buffer;
    try {
      bytes = cat(repository, sha);
    } catch {
      return { ...json(404, NOT_FOUND), template };
    }
    if (accept.includes('raw'))
      return {
        status: 200,
        headers: { 'content-type': 'application/vnd.github.raw; charset=utf-8' },
        body: bytes,
        template,
      };
    const content = bytes.toString('base64');
    return {
      ...json(200, {
        sha,
        node_id: 'B_1',
        size: bytes.byteLength,
        url: `${url(api)}/blobs/${sha}`,
        content,
        encoding: 'base64',
      }),
      template,
    };
  }

  for (const server of [api, archive]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  return {
    url: url(api),
    repo: repository,
    name,
    token,
    seen,
    now,
    fault: (fault) => void faults.push({ ...fault }),
    healthy: () => void faults.splice(0),
    delivery(event, payload, secret, id = randomUUID()) {
      const body = JSON.stringify(payload);
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      return {
        body,
        headers: {
          'content-type': 'application/json',
          'x-github-event': event,
          'x-github-delivery': id,
          'x-hub-signature-256': `sha256=${signature}`,
        },
      };
    },
    push: (after, branch = repository.branch) => ({
      ref: `refs/heads/${branch}`,
      before: '0'.repeat(40),
      after,
      deleted: /^0+$/.test(after),
      repository: { id: now.id, full_name: fullName() },
    }),
    async [Symbol.asyncDispose]() {
      for (const server of [api, archive]) {
        server.closeAllConnections();
        server.close();
      }
      if (!repo) await repository[Symbol.asyncDispose]();
      if (stolen.size > 0) throw new Error('a token was sent to another host');
    },
  };
}

interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  readonly template?: string;
  readonly cost?: number;
}

const NOT_FOUND = { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' };

const json = (status: number, body: unknown): Reply => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(body),
});

const record = (request: IncomingMessage, host: Seen['host'], status: number, cost: number): Seen => ({
  method: request.method!,
  path: request.url!,
  host,
  status,
  cost,
  authorization: request.headers.authorization,
  ifNoneMatch: request.headers['if-none-match'],
});

function treeItem(line: string) {
  const tab = line.indexOf('\t');
  const [mode = '', type = '', sha = '', size = '-'] = line.slice(0, tab).split(/ +/);
  return {
    path: line.slice(tab + 1),
    mode,
    type,
    sha,
    ...(size !== '-' && { size: Number(size) }),
    url: `https://example.com/${sha}`,
  };
}

/** GitHub's example lacks what GitHub's schema requires; the difference is made up here. */
const wholeRepository = (description: Description | undefined, id: number, fullName: string, branch: string) => ({
  language: null,
  ...description?.example('full-repository-default-response'),
  id,
  full_name: fullName,
  default_branch: branch,
});

/** The fault that befalls this request, if any. */
function strike(faults: Fault[], what: string): Fault | undefined {
  const at = faults.findIndex(({ on, after = 0 }) => (on?.test(what) ?? true) && after <= 0);
  for (const fault of faults) if ((fault.on?.test(what) ?? true) && (fault.after ?? 0) > 0) fault.after!--;
  const fault = faults[at];
  if (fault?.times !== undefined && --fault.times <= 0) faults.splice(at, 1);
  return fault;
}

function send(response: ServerResponse, reply: Reply, fault: Fault | undefined): void {
  if (fault?.silence) return;
  const body = fault?.body ?? reply.body;
  response.writeHead(fault?.status ?? reply.status, {
    ...reply.headers,
    ...fault?.headers,
    ...(reply.status !== 304 && { 'content-length': Buffer.byteLength(body) }),
  });
  if (fault?.tearAfter === undefined) return void response.end(body);
  response.write(Buffer.from(body).subarray(0, fault.tearAfter), () => response.destroy());
}
