import type { Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import { checkFileKey, type FileStore } from './file-store.ts';
import { type Credentials, signed } from './sigv4.ts';

export interface S3FilesOptions extends Credentials {
  /** Its address, without the bucket: https://s3.eu-central-1.amazonaws.com, http://minio:9000 */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  /** Stands before every key. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

/** Longer than this nobody waits for one request. */
const AT_MOST_MS = 60_000;

/** Objects in a bucket of an S3-compatible service, addressed by path, which all of them understand. */
export function s3Files(options: S3FilesOptions): FileStore {
  const { bucket } = options;
  return {
    place: `s3:${bucket}`,
    put: async (key, bytes) => {
      const answer = await ask(options, { method: 'PUT', key, payload: bytes });
      if (!answer.ok) throw await refused(options, answer);
      await answer.body?.cancel();
    },
    read: async (key, { offset, length }) => {
      // Not signed: a proxy on the way may split a range.
      const range = `bytes=${offset}-${offset + Math.max(1, length) - 1}`;
      const answer = await ask(options, { method: 'GET', key, range });
      if (answer.status === 404) return gone(answer);
      if (answer.status === 416) return beyond(answer);
      if (!answer.ok) throw await refused(options, answer);
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status === 206) return { bytes, size: sizeOf(answer) ?? offset + bytes.length };
      // A service without ranges sends all of it.
      return { bytes: bytes.subarray(offset, offset + length), size: bytes.length };
    },
    remove: async (key) => {
      const answer = await ask(options, { method: 'DELETE', key });
      if (!answer.ok && answer.status !== 404) throw await refused(options, answer);
      await answer.body?.cancel();
    },
  };
}

interface Asked {
  readonly method: string;
  readonly key: string;
  readonly payload?: Uint8Array;
  readonly range?: string;
}

async function ask(options: S3FilesOptions, { method, key, payload, range }: Asked): Promise<Response> {
  const { endpoint, bucket, prefix, region, clock, fetch: send } = options;
  const url = new URL(`${endpoint.replace(/\/$/, '')}/${bucket}/${prefix}${checkFileKey(key)}`);
  const request = { method, url, headers: {}, payload: payload ?? new Uint8Array() };
  const headers = signed(request, { credentials: options, region, service: 's3', at: new Date(clock.now()) });
  try {
    return await send(url, {
      method,
      headers: { ...headers, ...(range && { range }) },
      ...(payload && { body: Buffer.from(payload) }),
      redirect: 'error',
      signal: AbortSignal.timeout(AT_MOST_MS),
    });
  } catch (error) {
    throw new ReeveError('FILES_UNAVAILABLE', { place: `${url.origin}/${bucket}`, problem: reason(error) });
  }
}

async function refused({ endpoint, bucket }: S3FilesOptions, answer: Response): Promise<ReeveError> {
  const text = await answer.text().catch(() => '');
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1];
  const problem = `it answered ${answer.status}${code ? ` ${code}` : ''}`;
  return new ReeveError('FILES_UNAVAILABLE', { place: `${endpoint}/${bucket}`, problem });
}

async function gone(answer: Response): Promise<undefined> {
  await answer.body?.cancel();
}

async function beyond(answer: Response) {
  await answer.body?.cancel();
  return { bytes: Buffer.alloc(0), size: sizeOf(answer) ?? 0 };
}

function sizeOf({ headers }: Response): number | undefined {
  const total = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1];
  return total === undefined ? undefined : Number(total);
}
