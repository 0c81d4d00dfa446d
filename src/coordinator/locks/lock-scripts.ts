import { ReeveError } from '../../errors.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Connection } from '../../redis/connection.ts';
import { type Keyspace, type KeyspaceOptions, keyReader, keyspace } from '../../redis/keys.ts';
import type { Scripts } from '../../redis/script.ts';
import { LEASE_CLASSES, type LockMode, type LockRef, lockName } from './lock.ts';
import { type LockKeys, lockKeys, lockOfKey, shapeOf } from './lock-keys.ts';
import type { Reply } from './scripts.ts';

export interface LockScriptsOptions {
  readonly connection: Connection;
  readonly keyspace: KeyspaceOptions;
  readonly scripts: Scripts;
  readonly events: EventLog;
}

/** Whose indexes are declared where a call concerns nobody in particular. */
export const NOBODY = 'nobody';

export interface Wanted {
  readonly lock: LockRef;
  readonly mode?: LockMode | undefined;
}

/** What the scripts over locks have in common: which keys they take, what they are told, and what they leave to tell. */
export class LockScripts {
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly connection: Connection;
  readonly isCluster: boolean;
  readonly #events: EventLog;
  readonly #stream: string;
  readonly #read: ReturnType<typeof keyReader>;

  constructor({ connection, keyspace: spelling, scripts, events }: LockScriptsOptions) {
    this.keys = keyspace(spelling);
    this.scripts = scripts;
    this.connection = connection;
    this.isCluster = spelling.mode === 'cluster';
    this.#events = events;
    this.#stream = this.keys.events('lock');
    this.#read = keyReader(spelling);
  }

  lockKeys(lock: LockRef): LockKeys {
    return lockKeys(this.keys, lock);
  }

  lockOf(key: string): LockRef | undefined {
    return lockOfKey(this.#read(key));
  }

  /** Whose an index is; undefined for what is none. */
  ownerOf(key: string): { readonly agent?: string | undefined } | undefined {
    const explained = this.#read(key);
    if (explained?.name === 'agentLocks') return { agent: explained.parts.agent };
    return explained?.name === 'resourceLocks' ? {} : undefined;
  }

  /** The list of keys in the order of lua/_locks.lua. */
  all(wanted: readonly Wanted[], agent: string): { readonly all: readonly string[] } {
    const all = this.isCluster ? [] : this.#derived(agent);
    for (const { lock } of wanted) {
      const { typeIndex, leases, ...own } = this.lockKeys(lock);
      all.push(own.lock, own.queue, own.waiters, own.fence, own.channel);
      if (leases) all.push(leases);
      if (typeIndex && !this.isCluster) all.push(typeIndex);
    }
    return { all };
  }

  common(wanted: readonly Wanted[], agent: string) {
    const { isCluster, connection } = this;
    return {
      shape: wanted.map(({ lock, mode = 'exclusive' }) => shapeOf(lock, mode)).join(''),
      publish: !isCluster ? 'PUBLISH' : connection.server.major >= 7 ? 'SPUBLISH' : 'cluster',
      grace_us: LEASE_CLASSES.agent.graceMs * 1000,
      agent,
    };
  }

  /** Runs a call that may be repeated; once more if its reply was lost. */
  async run<R>(lock: LockRef, call: () => Promise<Reply<R>>): Promise<R> {
    const { reply, told } = await call().catch((error: unknown) => {
      if (error instanceof ReeveError && error.code === 'REDIS_REPLY_UNKNOWN') return call();
      throw error;
    });
    for (let at = 0; at + 1 < told.length; at += 2)
      await this.#tell(lock, told[at] as LockEvent, told[at + 1] as string);
    return reply;
  }

  async #tell(lock: LockRef, event: LockEvent, facts: string): Promise<void> {
    const payload = JSON.parse(facts) as { agent_id: string };
    await this.#events.append(event, { lock: lockName(lock), ...payload });
  }

  #derived(agent: string): string[] {
    const { keys } = this;
    return [keys.lockRegistry(), keys.waitedLocks(), this.#stream, keys.agentLocks(agent), keys.waitFor(agent)];
  }
}

type LockEvent = 'lock:acquired' | 'lock:released' | 'lock:queued' | 'lock:promoted' | 'lock:expired';
