/** What Redis answers to TYPE, plus two things that have a name but are no key. */
export type RedisType = 'string' | 'hash' | 'list' | 'set' | 'zset' | 'stream' | 'channel' | 'group';

/** When a key ends. A TTL in Redis is the safety net; whatever expires also stores its deadline as data. */
export type Lifetime =
  | { readonly kind: 'none' }
  | { readonly kind: 'seconds'; readonly seconds: number; readonly renewed?: string }
  | { readonly kind: 'until'; readonly event: string }
  | { readonly kind: 'with'; readonly row: string }
  | { readonly kind: 'trimmed'; readonly entries: number; readonly seconds?: number };

/** Who writes the key. */
export type Room =
  | 'registry'
  | 'sync'
  | 'tasks'
  | 'agents'
  | 'locks'
  | 'approvals'
  | 'executions'
  | 'audit'
  | 'events'
  | 'sessions'
  | 'ratelimit'
  | 'jobs'
  | 'system';

/** Where the name comes from: one of the documents that prescribe names, or added by reeve beside them. */
export type Origin = 'asset' | 'odyssey' | 'ade' | 'additive';

/**
 * Keys of one slot group and one id live in one Cluster slot, so that one script may touch them all.
 * The heads of `project` and `asset` rows are tagged as a whole; `own` rows are spelt alike in both modes.
 */
type Placement =
  | { readonly slot: 'own' | 'project' | 'asset'; readonly cluster?: undefined }
  | { readonly slot: 'task' | 'resource' | 'agent' | 'user'; readonly cluster: string };

/** Variables stand in angle brackets, so that the braces of Cluster hash tags can be written as they are. */
export type KeyRow = Placement & {
  readonly pattern: string;
  readonly type: RedisType;
  readonly ttl: Lifetime;
  readonly room: Room;
  readonly from: Origin;
  readonly holds: string;
  readonly fields?: Readonly<Record<string, string>>;
};

export const MINUTE = 60;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
