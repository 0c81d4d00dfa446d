import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';

/** A secret as receivers' libraries know it: the prefix, and 32 random bytes in base64. */
export const newSecret = (): string => `${PREFIX}${randomBytes(32).toString('base64')}`;

export interface Signed {
  readonly id: string;
  readonly seconds: number;
  readonly body: string;
}

/**
 * The headers by which a receiver knows that it was us, that it is whole, and that it is not an old one again; as the Standard
 * Webhooks specification has them, for which there are libraries in most languages.
 */
export function signedHeaders(secret: string | undefined, { id, seconds, body }: Signed): Record<string, string> {
  const plain = { 'webhook-id': id, 'webhook-timestamp': String(seconds) };
  if (secret === undefined) return plain;
  const mac = createHmac('sha256', keyOf(secret)).update(`${id}.${seconds}.${body}`).digest('base64');
  return { ...plain, 'webhook-signature': `v1,${mac}` };
}

/** Without the prefix it is a secret that somebody made up: its own bytes are the key. */
const keyOf = (secret: string): Buffer =>
  secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret);
