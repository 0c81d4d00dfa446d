import type { Clock } from '../../clock.ts';
import { isoTime } from '../../clock.ts';
import type { Connection } from '../../redis/connection.ts';
import { isId } from '../../redis/ids.ts';
import type { Keyspace } from '../../redis/keys.ts';
import { unlessWrongType } from '../../redis/wrong-type.ts';
import { GENERAL } from './matcher.ts';

/** How much an agent may do at once is a lock's business; this is as much of it as the roster asks for. */
export interface Places {
  setCapacity(agent: string, change: { maxTasks?: number; status?: AgentStatus }): Promise<PlacesTaken | undefined>;
  capacity(agent: string): Promise<PlacesTaken | undefined>;
  removeCapacity(agent: string): Promise<boolean>;
}
export interface PlacesTaken {
  readonly maxTasks: number;
  readonly activeTasks: number;
  readonly status: AgentStatus;
}
export type AgentStatus = 'active' | 'draining' | 'offline';

export interface RosterOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly places: Places;
  readonly clock: Clock;
  /** Brings up to date what is read here. */
  readonly current?: () => Promise<void>;
}

export interface Registration {
  readonly agent: string;
  readonly type?: string | undefined;
  readonly capabilities?: readonly string[] | undefined;
  readonly maxTasks?: number | undefined;
}

export interface AgentCard {
  readonly agent_id: string;
  readonly agent_type: string;
  readonly capabilities: readonly string[];
  /** idle, working or finished, as plain clients know them; gone: not heard of for a day. */
  readonly status: string;
  readonly takes_work: AgentStatus;
  readonly current_task?: string | undefined;
  readonly tasks: readonly string[];
  readonly max_tasks: number;
  readonly active_tasks: number;
  readonly started_at?: string | undefined;
  /** Since when it has had the task it has had longest, what it said of it last, and how far it says it is. */
  readonly working_since?: string | undefined;
  readonly note?: string | undefined;
  readonly percent?: number | undefined;
  /** When it last gave a sign of life. */
  readonly last_seen?: string | undefined;
}

const DAY = 86_400;

/** Who works here. A plain client may enter itself with HSET; the list shows it as soon as it is named anywhere. */
export class Roster {
  readonly #options: RosterOptions;

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  async register({ agent, type, capabilities, maxTasks }: Registration): Promise<AgentCard> {
    const { connection, keys, places, clock } = this.#options;
    const redis = connection.commands;
    const key = keys.agent(agent);
    // Its places come first: whoever sees it on the roster may drain it.
    if (maxTasks !== undefined || !(await places.capacity(agent)))
      await places.setCapacity(agent, { maxTasks: maxTasks ?? 1, status: 'active' });
    if (!['hash', 'none'].includes(await redis.type(key))) await redis.del(key);
    await redis.hsetnx(key, 'started_at', isoTime(clock));
    if ((await redis.hget(key, 'status')) === 'finished') await redis.hset(key, 'status', 'idle');
    else await redis.hsetnx(key, 'status', 'idle');
    await redis.hsetnx(key, 'current_task', '');
    if (type !== undefined) await redis.hset(key, 'agent_type', type);
    if (capabilities !== undefined) await redis.hset(key, 'capabilities', JSON.stringify(capabilities));
    await redis.expire(key, DAY);
    await redis.sadd(keys.knownAgents(), agent);
    return (await this.show(agent)) as AgentCard;
  }

  /** A sign of life, or that it looks for no more work. False if nobody of that name is registered. */
  async heartbeat(agent: string, { isFinished = false } = {}): Promise<boolean> {
    const { connection, keys, current } = this.#options;
    const redis = connection.commands;
    const key = keys.agent(agent);
    if ((await redis.expire(key, DAY)) !== 1) return false;
    await current?.();
    const was = await unlessWrongType(redis.hget(key, 'status'), null);
    const holds = async () => (await redis.hlen(keys.agentClaims(agent))) > 0;
    if (isFinished && !(await holds())) {
      await redis.hset(key, 'status', 'finished');
      // Another of its name may have claimed meanwhile.
      if (await holds()) await redis.hset(key, 'status', 'working');
    } else if (!isFinished && was === 'finished') await redis.hset(key, 'status', 'idle');
    return true;
  }

  /** It finishes what it has and gets nothing new. */
  async setStatus(agent: string, status: AgentStatus): Promise<AgentCard | undefined> {
    const { places } = this.#options;
    if (!(await this.show(agent))) return undefined;
    // A plain client has a card and no places.
    if (!(await places.setCapacity(agent, { status }))) await places.setCapacity(agent, { maxTasks: 1, status });
    return this.show(agent);
  }

  async remove(agent: string): Promise<boolean> {
    const { connection, keys, places } = this.#options;
    const redis = connection.commands;
    const wasKnown = (await redis.srem(keys.knownAgents(), agent)) + (await redis.del(keys.agent(agent)));
    const hadPlaces = await places.removeCapacity(agent);
    return wasKnown > 0 || hadPlaces;
  }

  async show(agent: string): Promise<AgentCard | undefined> {
    const { connection, keys, places, clock, current } = this.#options;
    const redis = connection.commands;
    await current?.();
    const [row, left, claims, taken] = await Promise.all([
      unlessWrongType(redis.hgetall(keys.agent(agent)), {}),
      redis.ttl(keys.agent(agent)),
      redis.hkeys(keys.agentClaims(agent)),
      places.capacity(agent),
    ]);
    if (Object.keys(row).length === 0 && !taken && claims.length === 0) return undefined;
    const doing = await this.#doing(claims, row.current_task);
    return {
      agent_id: agent,
      agent_type: row.agent_type || GENERAL,
      capabilities: listOf(row.capabilities),
      // A plain client may never have said.
      status: row.status ?? (Object.keys(row).length === 0 ? 'gone' : doing.working_since ? 'working' : 'idle'),
      takes_work: taken?.status ?? 'active',
      current_task: row.current_task || undefined,
      tasks: claims.sort(),
      max_tasks: taken?.maxTasks ?? 1,
      active_tasks: taken?.activeTasks ?? claims.length,
      started_at: row.started_at,
      ...doing,
      // Each sign of life gives the row another day.
      last_seen: left > 0 ? new Date(clock.now() - (DAY - left) * 1000).toISOString() : undefined,
    };
  }

  async #doing(claims: readonly string[], current: string | undefined) {
    const { connection, keys } = this.#options;
    const tasks = claims.length > 0 ? claims : isId('task', current) ? [current] : [];
    const rows = await Promise.all(
      tasks.map((task) => connection.commands.hmget(keys.taskRecord(task), 'claimed_at', 'note', 'percent', 'status')),
    );
    const [first] = rows
      .filter(([since, , , status]) => since && (status === 'assigned' || status === 'in_progress'))
      .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
    if (!first) return {};
    const [since, note, percent] = first;
    return {
      working_since: since ?? undefined,
      note: note || undefined,
      percent: percent ? Number(percent) : undefined,
    };
  }

  async list(): Promise<AgentCard[]> {
    const { connection, keys, current } = this.#options;
    await current?.();
    const ids = (await connection.commands.smembers(keys.knownAgents())).sort();
    const cards = await Promise.all(ids.map((id) => this.show(id)));
    return cards.filter((card) => card !== undefined);
  }
}

function listOf(text: string | undefined): string[] {
  try {
    const parsed: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}
