import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface TestS3 extends AsyncDisposable {
  readonly endpoint: string;
  /** By path, bucket included. */
  readonly objects: ReadonlyMap<string, Buffer>;
  /** What it refused, in the words of S3. */
  readonly refusals: readonly string[];
  /** Answers so from now on; undefined: as it should. */
  breaks: number | undefined;
}

const KEY = 'AKIATEST';
const SECRET = 'secret/+of=test';
export const S3_CREDENTIALS = { accessKeyId: KEY, secretAccessKey: SECRET };

/**
 * Stands in for an S3-compatible service: objects in memory, each request checked by what arrived on the wire (signature,
 * hash of the payload, date), written from the description of the signature and not from the code that signs.
 */
export async function startTestS3(bucket: string): Promise<TestS3> {
  const objects = new Map<string, Buffer>();
  const refusals: string[] = [];
  const state: { breaks: number | undefined } = { breaks: undefined };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const answer = (status: number, content: Buffer | string = '', headers = {}) =>
      response.writeHead(status, headers).end(content);
    if (state.breaks !== undefined) return answer(state.breaks, '<Error><Code>SlowDown</Code></Error>');
    const wrong = objection(request, body);
    if (wrong) {
      refusals.push(wrong);
      return answer(403, `<Error><Code>${wrong}</Code></Error>`);
    }
    const path = request.url ?? '';
    if (!path.startsWith(`/${bucket}/`)) return answer(404, '<Error><Code>NoSuchBucket</Code></Error>');
    if (request.method === 'PUT') objects.set(path, body);
    if (request.method === 'PUT') return answer(200);
    if (request.method === 'DELETE') objects.delete(path);
    if (request.method === 'DELETE') return answer(204);
    const found = objects.get(path);
    if (!found) return answer(404, '<Error><Code>NoSuchKey</Code></Error>');
    const [, from = '', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (Number(from) >= found.length) return answer(416, '', { 'content-range': `bytes */${found.length}` });
    const part = found.subarray(Number(from), Number(to) + 1);
    const range = `bytes ${from}-${Number(from) + part.length - 1}/${found.length}`;
    return answer(206, part, { 'content-range': range });
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(state, {
    endpoint: `http://127.0.0.1:${port}`,
    objects,
    refusals,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}

/** Why the request is not what its sender signed. */
function objection(request: IncomingMessage, body: Buffer): string | undefined {
  const said = request.headers.authorization ?? '';
  const [, key, day, region, service, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      said,
    ) ?? [];
  if (!signature || !names) return 'AccessDenied';
  if (key !== KEY) return 'InvalidAccessKeyId';
  const hash = createHash('sha256').update(body).digest('hex');
  if (request.headers['x-amz-content-sha256'] !== hash) return 'XAmzContentSHA256Mismatch';
  const moment = String(request.headers['x-amz-date']);
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const lines = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const described = `${request.method}\n${path}\n${query}\n${lines.join('')}\n${names}\n${hash}`;
  const digest = createHash('sha256').update(described).digest('hex');
  const text = `AWS4-HMAC-SHA256\n${moment}\n${day}/${region}/${service}/aws4_request\n${digest}`;
  let link = Buffer.from(`AWS4${SECRET}`);
  for (const part of [day, region, service, 'aws4_request'])
    link = createHmac('sha256', link)
      .update(part as string)
      .digest();
  const wanted = createHmac('sha256', link).update(text).digest('hex');
  return wanted === signature ? undefined : 'SignatureDoesNotMatch';
}
