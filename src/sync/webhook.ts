import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import { isId } from '../redis/ids.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Sync } from './sync.ts';

/** A source that GitHub may tell us about. */
export interface HookedSource {
  readonly name: string;
  /** OWNER/NAME */
  readonly repo: string;
  /** Undefined is the default branch, whatever it is called. */
  readonly branch: string | undefined;
  /** Any of them will do: while a secret is being changed there are two. */
  readonly secrets: readonly string[];
  readonly keys: Keyspace;
}

export interface WebhookOptions {
  readonly sources: readonly HookedSource[];
  readonly sync: Sync;
  readonly connection: Connection;
  readonly log: Logger;
}

export interface Delivery {
  /** The source in the path, if one was named. */
  readonly source?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Exactly as it came: the signature is over these bytes. */
  readonly body: Uint8Array;
}

export interface Verdict {
  readonly status: 200 | 202;
  readonly says: 'pong' | 'ignored' | 'seen before' | 'accepted';
  readonly sources: readonly string[];
}

export type Webhook = (delivery: Delivery) => Promise<Verdict>;

/** GitHub sends no larger ones. */
export const MOST_DELIVERY_BYTES = 25 * 2 ** 20;
const REDELIVERY_SECONDS = 3 * 24 * 3600;

/**
 * A webhook is only a hint that it may be worth asking: it names a source and a commit, nothing of its content is taken
 * over. It is answered at once; the sync it asks for runs afterwards. Without a secret there are no webhooks.
 */
export function createWebhook({ sources, sync, connection, log }: WebhookOptions): Webhook {
  return async ({ source, headers, body }) => {
    const chosen = source === undefined ? sources : sources.filter(({ name }) => name === source);
    if (source !== undefined && chosen.length === 0) {
      throw new ReeveError('NO_SUCH_SOURCE', { name: source, known: sources.map(({ name }) => name).join(', ') });
    }
    const trusted = signedFor(chosen, headers, body);
    const payload = readPayload(body);
    const event = one(headers['x-github-event']) ?? '';
    if (event === 'ping') return { status: 200, says: 'pong', sources: [] };
    const meant = trusted.filter((candidate) => concerns(candidate, event, payload));
    if (meant.length === 0) return { status: 202, says: 'ignored', sources: [] };

    const delivery = one(headers['x-github-delivery']) ?? '';
    const names: string[] = [];
    for (const { name, keys } of meant) {
      const key = isId('delivery', delivery) ? keys.assetSyncDelivery(delivery) : undefined;
      if (key && (await isDone(connection, key))) continue;
      names.push(name);
      const [ticket] = sync.ask(name, { trigger: 'webhook', barrier: barrierOf(event, payload) });
      // A redelivery of one whose sync did not end well must work again.
      if (key) void ticket!.done.then((run) => (run.problem ? undefined : remember(key, 'done')));
    }
    return names.length > 0
      ? { status: 202, says: 'accepted', sources: names }
      : { status: 200, says: 'seen before', sources: [] };
  };

  async function remember(key: string, word: 'done'): Promise<void> {
    try {
      await connection.commands.set(key, word, 'EX', REDELIVERY_SECONDS);
    } catch (error) {
      log.debug('delivery not remembered', { problem: reason(error) });
    }
  }
}

/** True for a delivery whose sync has ended well. */
async function isDone(connection: Connection, key: string): Promise<boolean> {
  const isNew = (await connection.commands.set(key, 'received', 'EX', REDELIVERY_SECONDS, 'NX')) === 'OK';
  return !isNew && (await connection.commands.get(key)) === 'done';
}

/** The sources whose secret signed these bytes. Every secret is tried, in constant time, whichever fits. */
function signedFor(
  sources: readonly HookedSource[],
  headers: Delivery['headers'],
  body: Uint8Array,
): readonly HookedSource[] {
  const withSecret = sources.filter(({ secrets }) => secrets.length > 0);
  if (withSecret.length === 0) throw new ReeveError('WEBHOOK_OFF', { why: 'no secret is set' });
  const given = /^sha256=([0-9a-f]{64})$/.exec(one(headers['x-hub-signature-256']) ?? '')?.[1];
  if (!given) throw new ReeveError('WEBHOOK_REFUSED', { why: 'it has no SHA-256 signature' });
  const signature = Buffer.from(given, 'hex');
  const fits = (secret: string) => timingSafeEqual(signature, createHmac('sha256', secret).update(body).digest());
  // All are tried, also after one that fits.
  const trusted = withSecret.filter(({ secrets }) => secrets.map(fits).includes(true));
  if (trusted.length === 0) throw new ReeveError('WEBHOOK_REFUSED', { why: 'the signature is not ours' });
  if (!/^application\/json\b/i.test(one(headers['content-type']) ?? '')) {
    throw new ReeveError('WEBHOOK_REFUSED', { why: 'its content type is not application/json' });
  }
  return trusted;
}

const PAYLOAD = z.looseObject({
  ref: z.string().optional(),
  after: z.string().optional(),
  deleted: z.boolean().optional(),
  repository: z.looseObject({ full_name: z.string(), default_branch: z.string().optional() }).optional(),
});
type Payload = z.output<typeof PAYLOAD>;

function readPayload(body: Uint8Array): Payload {
  try {
    return PAYLOAD.parse(JSON.parse(Buffer.from(body).toString()));
  } catch (error) {
    throw new ReeveError('WEBHOOK_UNREADABLE', {}, { cause: error });
  }
}

const concerns = ({ repo, branch }: HookedSource, event: string, { ref, repository }: Payload): boolean => {
  if (repository?.full_name.toLowerCase() !== repo.toLowerCase()) return false;
  if (event !== 'push') return event === 'repository' || event === 'create' || event === 'delete';
  const wanted = branch ?? repository.default_branch;
  return wanted === undefined || ref === `refs/heads/${wanted}`;
};

/** Where the branch must be before "unchanged" is believed. A deleted branch is nowhere. */
const barrierOf = (event: string, { after, deleted }: Payload): string | undefined =>
  event === 'push' && !deleted && after && /^[0-9a-f]{40,64}$/.test(after) && !/^0+$/.test(after) ? after : undefined;

const one = (header: string | string[] | undefined): string | undefined => (Array.isArray(header) ? header[0] : header);
