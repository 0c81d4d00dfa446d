import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { admit, type Limit } from './rate-limit.ts';

/** What is limited: the names stand in keys. */
export type Endpoint = 'tasks:create' | 'approvals:respond';

export interface EndpointLimitsOptions {
  readonly scripts: Scripts;
  readonly keys: Keyspace;
  /** For one caller, and for all of them together. Asked each time. */
  readonly limits: () => Readonly<Record<Endpoint, { readonly each: Limit; readonly all: Limit }>>;
}

/**
 * How often something may be asked, by whoever was found out to ask: another name in a header, another address or another agent id
 * is the same caller. Many callers share one limit besides, so that no crowd of them keeps the daemon from the rest.
 */
export class EndpointLimits {
  readonly #options: EndpointLimitsOptions;

  constructor(options: EndpointLimitsOptions) {
    this.#options = options;
  }

  /** RATE_LIMITED, with the time to wait, once it is too often. */
  async admit(endpoint: Endpoint, caller: string): Promise<void> {
    const { scripts, keys, limits } = this.#options;
    const { each, all } = limits()[endpoint];
    const what = `${endpoint.replace(':', ' ')}, ${each.perMinute} a minute`;
    await admit(scripts, keys.rateLimit(endpoint, caller), each, { who: caller, what });
    const together = `${endpoint.replace(':', ' ')}, ${all.perMinute} a minute for all`;
    await admit(scripts, keys.rateLimitForAll(endpoint), all, { who: 'Everyone together', what: together });
  }
}
