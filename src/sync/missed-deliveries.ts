import { z } from 'zod';
import { type Clock, jittered } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { every, type Service } from '../service.ts';
import type { GithubClient } from './github-client.ts';

export interface MissedDeliveriesOptions {
  /** Name of the source: its webhook may be /webhook/github/NAME. */
  readonly source: string;
  /** OWNER/NAME */
  readonly repo: string;
  readonly client: GithubClient;
  /** Number of the webhook, where the settings know it. */
  readonly hookId?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Repaired =
  | { readonly outcome: 'looked'; readonly deliveries: number; readonly missed: number; readonly asked: number }
  /** The token may not see webhooks, or there is none: the schedule alone keeps the source in step. */
  | { readonly outcome: 'unseen'; readonly why: string };

const PERIOD_MS = 3_600_000;
/** GitHub keeps deliveries, and sends them again, for three days. */
const WINDOW_MS = 3 * 24 * 3_600_000;
/** GitHub shows the newest first; more than these are not looked through. */
const MOST_PAGES = 5;
const MOST_ASKED = 20;
/** What failed so often fails for a reason that one more attempt does not mend. */
const MOST_ATTEMPTS = 4;
const TELLING = new Set(['push', 'repository', 'create', 'delete']);

/** Asks GitHub once an hour which deliveries never reached us, and to send them again. GitHub itself never does. */
export function missedDeliveries(options: MissedDeliveriesOptions): Service {
  const { source, clock, log } = options;
  return every(`missed deliveries of ${source}`, {
    clock,
    pauseMs: () => jittered(PERIOD_MS),
    tick: async (signal) => {
      const found = await repairDeliveriesOnce(options, signal);
      if (found.outcome === 'unseen') log.debug('webhook deliveries cannot be seen', { source, why: found.why });
      else if (found.asked > 0) log.info('missed webhook deliveries were asked for again', { source, ...found });
    },
    onError: (error) => log.debug('webhook deliveries were not looked through', { source, problem: reason(error) }),
  });
}

/**
 * Which deliveries arrived is GitHub's own record, so that nothing is kept here: what was asked for again shows there as a
 * redelivery. A delivery that arrives twice does no harm; it is known by its id.
 */
export async function repairDeliveriesOnce(options: MissedDeliveriesOptions, signal: AbortSignal): Promise<Repaired> {
  const { client, clock } = options;
  try {
    const hook = options.hookId === undefined ? await findHook(options, signal) : String(options.hookId);
    if (hook === undefined) return { outcome: 'unseen', why: 'no webhook of this repository leads here' };
    const since = clock.now() - WINDOW_MS;
    const deliveries = await recentDeliveries(options, hook, since, signal);
    const missed = missedOf(deliveries);
    const again = missed.filter(({ attempts }) => attempts < MOST_ATTEMPTS).slice(0, MOST_ASKED);
    for (const { id } of again) {
      const path = '/repos/{owner}/{repo}/hooks/{hook}/deliveries/{id}/attempts';
      await client.post(path, { params: { ...repoOf(options), hook, id }, signal });
    }
    return { outcome: 'looked', deliveries: deliveries.length, missed: missed.length, asked: again.length };
  } catch (error) {
    if (!(error instanceof ReeveError) || !UNSEEN.has(error.code)) throw error;
    return { outcome: 'unseen', why: error.message };
  }
}

/** Webhooks are for administrators: most tokens get one of these. */
const UNSEEN = new Set<string>(['SOURCE_FORBIDDEN', 'SOURCE_MISSING', 'SOURCE_UNAUTHORIZED']);

const delivery = z.object({
  id: z.string(),
  guid: z.string(),
  delivered_at: z.string(),
  status_code: z.int(),
  event: z.string(),
});
type Delivery = z.output<typeof delivery>;

const hooks = z.array(
  z.object({
    id: z.string(),
    active: z.boolean(),
    config: z.object({ url: z.string().optional() }),
  }),
);

/** The active webhook whose address is one of ours, whatever host stands before it. */
async function findHook(options: MissedDeliveriesOptions, signal: AbortSignal): Promise<string | undefined> {
  const { client, source } = options;
  const { text } = await client.page('/repos/{owner}/{repo}/hooks?per_page=100', { params: repoOf(options), signal });
  const leadsHere = new RegExp(`/webhook/github(?:/${source})?/?$`);
  return hooks
    .parse(withTextIds(text))
    .find(({ active, config: { url = '' } }) => active && leadsHere.test(url.replace(/[?#].*$/, '')))?.id;
}

async function recentDeliveries(
  options: MissedDeliveriesOptions,
  hook: string,
  since: number,
  signal: AbortSignal,
): Promise<Delivery[]> {
  const found: Delivery[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const path = `/repos/{owner}/{repo}/hooks/{hook}/deliveries?per_page=100${cursor ? '&cursor={cursor}' : ''}`;
    const params = { ...repoOf(options), hook, ...(cursor && { cursor }) };
    const answer = await options.client.page(path, { params, signal });
    const all = z.array(delivery).parse(withTextIds(answer.text));
    const recent = all.filter(({ delivered_at }) => Date.parse(delivered_at) >= since);
    found.push(...recent);
    cursor = answer.cursor;
    if (cursor === undefined || recent.length < all.length) break;
  }
  return found;
}

/** Deliveries none of whose attempts was answered well: the newest attempt of each, oldest delivery first. */
function missedOf(deliveries: readonly Delivery[]): { readonly id: string; readonly attempts: number }[] {
  const byGuid = Map.groupBy(
    deliveries.filter(({ event }) => TELLING.has(event)),
    ({ guid }) => guid,
  );
  return [...byGuid.values()]
    .filter((attempts) => !attempts.some(({ status_code: code }) => code >= 200 && code < 300))
    .map((attempts) => ({ id: attempts[0]!.id, attempts: attempts.length }))
    .reverse();
}

/** Ids have more digits than a number of this language holds. */
const withTextIds = (text: string): unknown =>
  JSON.parse(text, (key: string, value: unknown, context?: { readonly source?: string }) =>
    key === 'id' && typeof value === 'number' ? (context?.source ?? String(value)) : value,
  );

const repoOf = ({ repo }: MissedDeliveriesOptions) => {
  const [owner = '', name = ''] = repo.split('/');
  return { owner, repo: name };
};
