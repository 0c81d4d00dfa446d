import { createHash, createHmac } from 'node:crypto';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Unsigned {
  readonly method: string;
  readonly url: URL;
  /** All of these are signed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
}

export interface SigningTerms {
  readonly credentials: Credentials;
  readonly region: string;
  readonly service: string;
  readonly at: Date;
}

/**
 * The headers of a request to an S3-compatible service, with its signature (AWS Signature Version 4, in the header, payload
 * included). Some forty lines of a form that does not change: less to keep an eye on than a package.
 */
export function signed(request: Unsigned, terms: SigningTerms): Record<string, string> {
  const { method, url, payload } = request;
  const { credentials, region, service, at } = terms;
  const moment = at.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = moment.slice(0, 8);
  const hash = sha256(payload);
  const headers = { ...request.headers, host: url.host, 'x-amz-content-sha256': hash, 'x-amz-date': moment };
  const named = Object.entries(headers)
    .map(([name, value]): [string, string] => [name.toLowerCase(), value.trim().replace(/\s+/g, ' ')])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const names = named.map(([name]) => name).join(';');
  const lines = named.map(([name, value]) => `${name}:${value}\n`).join('');
  const canonical = [method, url.pathname, queryOf(url), lines, names, hash].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', moment, scope, sha256(canonical)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(
    (before, part) => hmac(before, part),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = hmac(key, toSign).toString('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  const { host: _, ...sent } = headers;
  return { ...sent, authorization };
}

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** Sorted by the encoded name. */
const queryOf = ({ searchParams }: URL): string =>
  [...searchParams]
    .map(([name, value]) => `${strictly(name)}=${strictly(value)}`)
    .toSorted()
    .join('&');
const strictly = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
