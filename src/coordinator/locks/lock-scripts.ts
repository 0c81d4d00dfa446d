import { ReeveError } from '../../errors.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Connection } from '../../redis/connection.ts';
import { parseId, type TaskId } from '../../redis/ids.ts';
import { type Keyspace, type KeyspaceOptions, keyReader, keyspace } from '../../redis/keys.ts';
import type { Scripts } from '../../redis/script.ts';
import { type LockMode, type LockRef, lockName } from './lock.ts';
import { type LockSpeller, lockOfKey, lockSpeller, shapeOf, taskLockSpeller } from './lock-keys.ts';
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
  readonly lockKeys: LockSpeller;
  readonly taskLock: (id: TaskId) => string;
  readonly #read: ReturnType<typeof keyReader>;

  constructor({ connection, keyspace: spelling, scripts, events }: LockScriptsOptions) {
    this.keys = keyspace(spelling);
    this.scripts = scripts;
    this.connection = connection;
    this.isCluster = spelling.mode === 'cluster';
    this.#events = events;
    this.lockKeys = lockSpeller(this.keys);
    this.taskLock = taskLockSpeller(spelling);
    this.#read = keyReader(spelling);
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
  all(wanted: readonly Wanted[]): { readonly all: readonly string[] } {
    const { isCluster } = this;
    const all: string[] = [];
    for (const { lock } of wanted) {
      const own = this.lockKeys(lock);
      all.push(own.lock);
      if (isCluster) all.push(own.queue, own.waiters, own.fence, own.channel);
      if (isCluster && own.leases) all.push(own.leases);
      if (!isCluster && own.typeIndex) all.push(own.typeIndex);
    }
    return { all };
  }

  common(wanted: readonly Wanted[], agent: string) {
    let shape = !this.isCluster ? '' : this.connection.server.major >= 7 ? '*' : '+';
    for (const { lock, mode = 'exclusive' } of wanted) shape += shapeOf(lock, mode);
    return { shape, agent: parseId('agent', agent) };
  }

  /** Runs a call that may be repeated; once more if its reply was lost. */
  async run<R>(lock: LockRef, call: () => Promise<Reply<R>>): Promise<R> {
    let answer: Reply<R>;
    try {
      answer = await call();
    } catch (error) {
      if (!(error instanceof ReeveError && error.code === 'REDIS_REPLY_UNKNOWN')) throw error;
      answer = await call();
    }
    const { reply, told } = answer;
    for (let at = 0; at + 1 < told.length; at += 2)
      await this.#tell(lock, told[at] as LockEvent, told[at + 1] as string);
    return reply;
  }

  async #tell(lock: LockRef, event: LockEvent, facts: string): Promise<void> {
    const payload = JSON.parse(facts) as { agent_id: string };
    await this.#events.append(event, { lock: lockName(lock), ...payload });
  }
}

type LockEvent = 'lock:acquired' | 'lock:released' | 'lock:queued' | 'lock:promoted' | 'lock:expired';
