import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readDaemonFile } from '../daemon-file.ts';
import { ERRORS, type ErrorCode } from '../error-catalogue.ts';
import { type Problem, ReeveError, reason } from '../errors.ts';
import { jsonOf, linesOf, send } from './http.ts';
import { readTokenFile } from './token-file.ts';

export interface ClientOptions {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly config?: string | undefined;
  readonly dataDir?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface Call {
  readonly method: string;
  /** As in the table of operations: relative to /api/v1, or absolute after a double slash. {names} come from the input. */
  readonly path: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal | undefined;
}

/** Speaks HTTP to a daemon. */
export class Client {
  readonly url: string;
  readonly #token: string | undefined;

  constructor(url: string, token?: string) {
    this.url = url.replace(/\/$/, '');
    this.#token = token;
  }

  /** The answer and its status: an operation may answer with others than 200 (`/readyz` with 503, a claim with 204). */
  async ask(call: Call): Promise<{ readonly answer: unknown; readonly status: number }> {
    const response = await this.#send(call, { accept: 'application/json' });
    const { statusCode: status = 0, headers } = response;
    const answer = status === 204 ? {} : await jsonOf(response);
    if (headers['content-type']?.startsWith('application/problem+json')) throw fromProblem(answer as Problem);
    if (answer === undefined) throw this.#unreachable(`it answered ${status} without JSON: is it a reeve?`);
    return { answer, status };
  }

  /** What is told after the cursor, or from now on; until the daemon or the signal ends it. */
  async *follow(call: Call, cursor?: string): AsyncIterable<{ readonly cursor: string; readonly item: unknown }> {
    const headers = { accept: 'text/event-stream', ...(cursor && { 'last-event-id': cursor }) };
    const response = await this.#send(call, headers);
    if (response.statusCode !== 200) throw fromProblem((await jsonOf(response)) as Problem);
    let place = '';
    try {
      for await (const line of linesOf(response)) {
        if (line.startsWith('id: ')) place = line.slice(4);
        if (line.startsWith('data: ')) yield { cursor: place, item: JSON.parse(line.slice(6)) as unknown };
      }
    } catch (error) {
      if (call.signal?.aborted || !response.destroyed) throw error;
      throw this.#unreachable(`it went away while it was listened to (${reason(error)})`);
    }
  }

  async #send({ method, path, input, signal }: Call, headers: Readonly<Record<string, string>>) {
    const rest = { ...input };
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(rest[name]);
      delete rest[name];
      return encodeURIComponent(value);
    });
    const url = new URL(filled.startsWith('//') ? filled.slice(1) : `/api/v1${filled}`, this.url);
    const hasBody = method !== 'GET' && method !== 'DELETE';
    if (!hasBody) for (const [name, value] of Object.entries(rest)) url.searchParams.set(name, String(value));
    try {
      return await send(url, {
        method,
        headers: {
          ...headers,
          ...(this.#token && { authorization: `Bearer ${this.#token}` }),
          ...(hasBody && { 'content-type': 'application/json' }),
        },
        body: hasBody ? JSON.stringify(rest) : undefined,
        signal,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw this.#unreachable(reason(error));
    }
  }

  #unreachable(problem: string): ReeveError {
    return new ReeveError('DAEMON_UNREACHABLE', { url: this.url, problem });
  }
}

/** The daemon that the flags every command takes lead to. */
export function daemonOf(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  { env, cwd }: Pick<ClientOptions, 'env' | 'cwd'>,
): Promise<Client> {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  return findDaemon({
    url: text('url'),
    token: text('token'),
    config: text('config'),
    dataDir: text('data-dir'),
    env,
    cwd,
  });
}

/** The daemon to speak to: the one named, else the one that runs on the data directory, else the usual address. */
export async function findDaemon({ url, token, config, dataDir, env, cwd }: ClientOptions): Promise<Client> {
  const given = token ?? (env.REEVE_TOKEN || undefined);
  const named = url ?? env.REEVE_URL;
  if (named) {
    if (!URL.canParse(named) || !/^https?:$/.test(new URL(named).protocol))
      throw new ReeveError('USAGE', {
        problem: `${named} is not the URL of a daemon`,
        hint: 'Write it like http://127.0.0.1:7420',
      });
    return new Client(named, given);
  }
  const settings = await whereabouts({ config, dataDir, env, cwd });
  const running = await readDaemonFile(settings.dataDir);
  // The one kept there is for the daemon of this directory and is sent to no other.
  const bearer = given ?? readTokenFile(settings.dataDir);
  return new Client(running?.address.startsWith('http') ? running.address : settings.usual, bearer);
}

/** Loading the settings costs more than most commands; a machine without a reeve.yaml does not need it. */
export async function whereabouts({ config, dataDir, env, cwd }: Omit<ClientOptions, 'url' | 'token'>) {
  const hasFile = config !== undefined || env.REEVE_CONFIG || existsSync(join(cwd, 'reeve.yaml'));
  if (!hasFile && !Object.keys(env).some((name) => name.startsWith('REEVE_HTTP_'))) {
    return { dataDir: resolve(cwd, dataDir ?? (env.REEVE_DATA_DIR || '.reeve')), usual: 'http://127.0.0.1:7420' };
  }
  const { loadConfig } = await import('../config.ts');
  const { config: settings } = loadConfig({ flags: { config, 'data-dir': dataDir }, env, cwd });
  return { dataDir: settings.dataDir, usual: `http://${settings.http.host}:${settings.http.port}` };
}

/** The daemon's refusal, as if it had happened here: same code, same exit, same wording. */
function fromProblem(problem: Problem): ReeveError {
  const isKnown = (code: unknown): code is ErrorCode => typeof code === 'string' && code in ERRORS;
  if (isKnown(problem?.code)) return new ReeveError(problem.code, problem.details ?? {});
  return new ReeveError('USAGE', {
    problem: problem?.detail ?? 'the daemon refused without a reason',
    hint: problem?.next ?? 'reeve doctor',
  });
}
