import { z } from 'zod';
import { ReeveError } from '../errors.ts';
import type { Connection } from '../redis/connection.ts';
import { isId } from '../redis/ids.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { type ApprovalRequest, requestSchema, type Tally, tallySchema } from './request.ts';
import { RISK_LEVELS, type Risk } from './risk.ts';
import { day } from './scripts.ts';

export interface ApprovalDeskOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
}

export interface ReviewerStats extends z.output<typeof storedStats> {
  /** The newest first. */
  readonly days: readonly { readonly day: string; readonly approved: number; readonly rejected: number }[];
}

export interface InboxPage {
  readonly items: readonly ApprovalRequest[];
  readonly total: number;
  readonly next?: string | undefined;
}

type Wanted = (request: ApprovalRequest) => boolean;

/** What was asked and answered, for people to look at. */
export class ApprovalDesk {
  readonly #options: ApprovalDeskOptions;

  constructor(options: ApprovalDeskOptions) {
    this.#options = options;
  }

  async find(id: string): Promise<ApprovalRequest | undefined> {
    if (!isId('approval', id)) return undefined;
    const { connection, keys } = this.#options;
    const fields = await connection.commands.hgetall(keys.approvalRequest(id));
    return Object.keys(fields).length > 0 ? { approval_id: id, ...requestSchema.parse(fields) } : undefined;
  }

  async get(id: string): Promise<ApprovalRequest> {
    const found = await this.find(id);
    if (!found) throw new ReeveError('APPROVAL_UNKNOWN', { approval: id });
    return found;
  }

  /**
   * What waits for one person, worst consequence first; or for anyone, what is due first. A page costs the same in any queue;
   * one that only some belong on costs as much as it takes to find them.
   */
  async inbox(reviewer: string | undefined, limit: number, cursor?: string, isWanted?: Wanted): Promise<InboxPage> {
    const items: ApprovalRequest[] = [];
    for (let from = cursor; ; ) {
      const page = await this.#page(reviewer, limit - items.length, from);
      items.push(...(isWanted ? page.items.filter(isWanted) : page.items));
      from = page.next;
      if (from === undefined || items.length >= limit || !isWanted) return { ...page, items };
    }
  }

  async #page(reviewer: string | undefined, limit: number, cursor?: string): Promise<InboxPage> {
    const { connection, keys } = this.#options;
    const redis = connection.commands;
    const queue = reviewer === undefined ? keys.approvalQueue() : keys.userApprovalQueue(reviewer);
    const from = cursor === undefined ? 0 : await this.#after(queue, cursor, reviewer !== undefined);
    const to = from + limit - 1;
    const page =
      reviewer === undefined ? redis.zrange(queue, String(from), String(to)) : redis.zrevrange(queue, from, to);
    const [ids, total] = await Promise.all([page, redis.zcard(queue)]);
    const found = await Promise.all(ids.map((id) => this.find(id)));
    const items = found.filter((one) => one !== undefined);
    const last = ids.at(-1);
    if (from + ids.length >= total || last === undefined) return { items, total };
    const score = await redis.zscore(queue, last);
    return { items, total, next: `${score ?? ''}~${last}` };
  }

  /** Every question about a task, in the order they were asked. */
  async about(task: string): Promise<ApprovalRequest[]> {
    const { connection, keys } = this.#options;
    const ids = await connection.commands.smembers(keys.approvalIndex(task));
    const found = await Promise.all(ids.sort(byNumber).map((id) => this.find(id)));
    return found.filter((one) => one !== undefined);
  }

  async tally(task: string): Promise<Tally> {
    const { connection, keys } = this.#options;
    return tallySchema.parse(await connection.commands.hgetall(keys.taskApprovalStats(task)));
  }

  /** How one reviewer is doing, today and on the days before, by the Redis server's clock. */
  async stats(person: string, days: number): Promise<ReviewerStats> {
    const [flat = [], ...counts] = await this.#options.scripts.run(day, {}, { person, days });
    const fields = Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]]] : [])));
    return {
      ...storedStats.parse(fields),
      days: counts.map(([date = '', approved, rejected]) => ({
        day: date,
        approved: Number(approved),
        rejected: Number(rejected),
      })),
    };
  }

  async risk(task: string): Promise<Risk | undefined> {
    const { connection, keys } = this.#options;
    const fields = await connection.commands.hgetall(keys.taskRisk(task));
    return Object.keys(fields).length > 0 ? storedRisk.parse(fields) : undefined;
  }

  async comments(task: string): Promise<readonly { by: string; at: string; text: string }[]> {
    const { connection, keys } = this.#options;
    const texts = await connection.commands.lrange(keys.taskComments(task), 0, -1);
    return texts.map((one) => JSON.parse(one) as { by: string; at: string; text: string });
  }

  /** One that has left the queue since is found by where it stood. */
  async #after(queue: string, cursor: string, isReversed: boolean): Promise<number> {
    const redis = this.#options.connection.commands;
    const [score = '', ...rest] = cursor.split('~');
    if (!Number.isFinite(Number(score)) || rest.length === 0) throw new ReeveError('BAD_CURSOR', { cursor });
    const id = rest.join('~');
    const rank = await (isReversed ? redis.zrevrank(queue, id) : redis.zrank(queue, id));
    if (rank !== null) return rank + 1;
    return isReversed ? redis.zcount(queue, `(${score}`, '+inf') : redis.zcount(queue, '-inf', `(${score}`);
  }
}

const storedStats = z.object({
  pending_count: z.coerce.number().default(0),
  approved_today: z.coerce.number().default(0),
  rejected_today: z.coerce.number().default(0),
  avg_response_time: z.coerce.number().optional(),
  last_action_at: z.string().optional(),
});

const storedRisk = z.object({
  score: z.coerce.number(),
  exact: z.coerce.number(),
  level: z.enum(RISK_LEVELS),
  factors: z.string().transform((json) => JSON.parse(json) as Risk['factors']),
  assessed_by: z.string(),
});

const byNumber = (a: string, b: string): number => numberOf(a) - numberOf(b);
const numberOf = (id: string): number => Number(id.slice(id.lastIndexOf('.') + 1));
