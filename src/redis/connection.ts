import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { backOff, type Clock, withDeadline } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Service, service } from '../service.ts';
import { BatchingRedis } from './batching-redis.ts';
import { redisFailure } from './failure.ts';
import type { RedisTarget } from './target.ts';

export type RedisClient = Redis | Cluster;

/**
 * Closes a client, once: a second time would arm a timer in ioredis that nothing clears. Between two attempts to
 * connect there is no socket whose closing would tell of the end, so whoever waits for it is told here.
 */
export function hangUp(client: RedisClient): void {
  if (client.status === 'end') return;
  const isBetweenAttempts = client.status === 'reconnecting';
  client.disconnect();
  if (isBetweenAttempts) client.emit('end');
}

/** How long after that ioredis cuts a socket that does not close; until then its timer keeps the process alive. */
const HANG_UP_MS = 50;

/** The clients that share one Redis. Which one to use follows from what the command does to its connection. */
export interface Connection extends Service {
  /** Ordinary commands and scripts. Never resends: a command whose reply was lost fails as REDIS_REPLY_UNKNOWN. */
  readonly commands: RedisClient;
  /** Subscriptions; they are taken up again by themselves after a break. */
  readonly subscriber: RedisClient;
  /** A client of its own for commands that block (XREAD BLOCK, BLMOVE). Whoever takes it hangs it up. */
  blocking(signal?: AbortSignal): Promise<RedisClient>;
  /** Lends a client that nobody else uses meanwhile, for WATCH and MULTI. If its connection breaks, it stays broken. */
  exclusive<T>(work: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Resolves when commands can be sent: at once, or after a break when the connection is back. */
  whenReady(signal: AbortSignal): Promise<void>;
  /** Where Redis is, for people; without a password. */
  readonly address: string;
  readonly mode: RedisTarget['kind'];
  /** What answered, learnt at the start. */
  readonly server: ServerInfo;
}

export interface ServerInfo {
  readonly flavour: 'redis' | 'valkey';
  readonly version: string;
  readonly major: number;
}

export interface ConnectionOptions {
  /** Asked when starting: an embedded server has an address only once it runs. */
  readonly target: () => RedisTarget;
  readonly clock: Clock;
  readonly log: Logger;
  readonly commandTimeoutMs: number;
  /** How long the start may try before it gives up. */
  readonly connectTimeoutMs: number;
  readonly name: string;
}

export function connectRedis(options: ConnectionOptions): Connection {
  let clients: Clients | undefined;
  const live = (): Clients => {
    if (!clients) throw new ReeveError('REDIS_UNAVAILABLE', { address: 'redis', problem: 'not connected yet' });
    return clients;
  };
  const life = service('redis connection', async (signal) => {
    signal.throwIfAborted();
    const opened = new Clients(options);
    signal.addEventListener('abort', () => opened.close(), { once: true });
    try {
      await opened.open();
    } catch (error) {
      opened.close();
      throw error;
    }
    clients = opened;
    return () => {
      clients = undefined;
    };
  });
  return {
    ...life,
    get commands() {
      return live().commands;
    },
    get subscriber() {
      return live().subscriber;
    },
    get address() {
      return clients?.target.address ?? options.target().address;
    },
    get mode() {
      return live().target.kind;
    },
    get server() {
      return live().server;
    },
    whenReady: async (signal) => live().whenReady(signal),
    blocking: async (signal) => live().extra('blocking', signal),
    exclusive: async (work) => live().lend(work),
  };
}

type Role = 'commands' | 'subscriber' | 'blocking' | 'exclusive';

/** The clients of one life of the connection. */
class Clients {
  readonly target: RedisTarget;
  readonly commands: RedisClient;
  readonly subscriber: RedisClient;
  server: ServerInfo = { flavour: 'redis', version: '0', major: 0 };
  readonly #options: ConnectionOptions;
  readonly #all = new Set<RedisClient>();
  readonly #idle: RedisClient[] = [];
  #lastError: Error | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.target = options.target();
    this.commands = this.#create('commands');
    this.subscriber = this.#create('subscriber');
  }

  async open(): Promise<void> {
    const { clock, connectTimeoutMs } = this.#options;
    const { address } = this.target;
    const both = Promise.all([this.commands, this.subscriber].map((client) => ready(client, address)));
    await withDeadline(clock, connectTimeoutMs, both, () => this.#noAnswer());
    this.server = await serverInfo(this.commands).catch((error: unknown) => {
      throw redisFailure(error, address) ?? error;
    });
  }

  /** Not with `once` of node:events, which takes the 'error' of each vain attempt for the end of the waiting. */
  whenReady(signal: AbortSignal): Promise<void> {
    const { commands } = this;
    return new Promise((resolve, reject) => {
      if (commands.status === 'ready') return resolve();
      if (signal.aborted) return reject(signal.reason);
      const back = () => {
        signal.removeEventListener('abort', over);
        resolve();
      };
      const over = () => {
        commands.off('ready', back);
        reject(signal.reason);
      };
      commands.once('ready', back);
      signal.addEventListener('abort', over, { once: true });
    });
  }

  async extra(role: Role, signal?: AbortSignal): Promise<RedisClient> {
    signal?.throwIfAborted();
    const { clock, connectTimeoutMs } = this.#options;
    const client = this.#create(role);
    const giveUp = () => hangUp(client);
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      await withDeadline(clock, connectTimeoutMs, ready(client, this.target.address), () => this.#noAnswer());
      return client;
    } catch (error) {
      giveUp();
      throw error;
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }

  async lend<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    const client = this.#pooled() ?? (await this.extra('exclusive'));
    let isClean = false;
    try {
      const result = await work(client);
      isClean = await unwatched(client);
      return result;
    } finally {
      // After a failure nobody knows in what state the work left it.
      if (isClean) this.#idle.push(client);
      else hangUp(client);
    }
  }

  #noAnswer(): ReeveError {
    const problem = this.#lastError?.message ?? 'no answer';
    return new ReeveError('REDIS_UNAVAILABLE', { address: this.target.address, problem }, { cause: this.#lastError });
  }

  #pooled(): RedisClient | undefined {
    for (let client = this.#idle.pop(); client; client = this.#idle.pop()) {
      if (client.status === 'ready') return client;
      hangUp(client);
    }
    return undefined;
  }

  close(): void {
    for (const client of this.#all) hangUp(client);
  }

  #create(role: Role): RedisClient {
    const client = this.target.kind === 'cluster' ? this.#cluster(this.target, role) : this.#redis(this.target, role);
    this.#all.add(client);
    client.on('end', () => this.#all.delete(client));
    client.on('error', (error: Error) => this.#report(role, error));
    if (client instanceof Cluster) client.on('node error', (error: Error) => this.#report(role, error));
    return client;
  }

  #redis(target: RedisTarget & { kind: 'standalone' }, role: Role): Redis {
    let isWatching = false;
    const options: Omit<RedisOptions, 'replyMapping'> = {
      ...target.options,
      ...this.#patience(role),
      lazyConnect: true,
      // A WATCH ends with its connection: if a lent client came back by itself, an EXEC would pass unwatched.
      retryStrategy: (times) => (isWatching ? null : backOff(times - 1, 50, 2_000)),
      connectionName: `${this.#options.name}:${role}`,
    };
    if (role === 'commands') {
      const { clock, commandTimeoutMs } = this.#options;
      return new BatchingRedis(options, { clock, patienceMs: commandTimeoutMs });
    }
    const client = new Redis(options);
    if (role === 'exclusive') {
      client.once('ready', () => {
        isWatching = true;
      });
    }
    return client;
  }

  #cluster(target: RedisTarget & { kind: 'cluster' }, role: Role): Cluster {
    const { enableOfflineQueue, ...patience } = this.#patience(role);
    const client = new Cluster(target.nodes, {
      ...target.options,
      lazyConnect: true,
      enableOfflineQueue,
      shardedSubscribers: role === 'subscriber',
      // Zero is never: a command that was under way when a node went down may have run there, and must not run again.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      clusterRetryStrategy: (times) => backOff(times - 1, 50, 2_000),
      redisOptions: {
        ...target.options.redisOptions,
        ...patience,
        connectionName: `${this.#options.name}:${role}`,
      },
    });
    // Connected before the first command comes: the library refuses those that come while it connects.
    client.on('+node', (node: Redis) => void (node.status === 'wait' && node.connect().catch(() => {})));
    if (role === 'exclusive') {
      client.once('ready', () => {
        for (const node of client.nodes('master')) node.once('end', () => hangUp(client));
      });
    }
    return client;
  }

  /**
   * A command that was sent and not answered may have run, so it is never sent again by itself: with no retries
   * ioredis fails it when the connection closes. A command that could not be sent fails at once, and certainly did not run.
   */
  #patience(role: Role) {
    const { commandTimeoutMs } = this.#options;
    // A blocking command takes as long as it takes. On one server the ordinary ones are looked after by OwedReplies.
    const isTimed = role === 'exclusive' || (role === 'commands' && this.target.kind === 'cluster');
    return {
      disconnectTimeout: HANG_UP_MS,
      enableOfflineQueue: role === 'subscriber',
      maxRetriesPerRequest: role === 'subscriber' ? null : 0,
      // A host that vanished closes nothing: a connection that owes an answer for this long is made anew.
      ...(isTimed && { commandTimeout: commandTimeoutMs, socketTimeout: commandTimeoutMs }),
    };
  }

  #report(role: Role, error: Error): void {
    const repeated = this.#lastError?.message === error.message;
    this.#lastError = error;
    if (!repeated) this.#options.log.warn('redis connection trouble', { role, problem: error.message });
  }
}

/** Connecting goes on in the background after a first failure; hopeless at once are a refused login and a given-up client. */
function ready(client: RedisClient, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const hopeless = (error: Error) => {
      const failure = redisFailure(error, address);
      if (failure?.code === 'REDIS_REFUSED') reject(failure);
    };
    client.on('error', hopeless);
    client.once('ready', () => {
      client.off('error', hopeless);
      resolve(client instanceof Cluster ? nodesReady(client) : undefined);
    });
    client.once('end', () => reject(new ReeveError('REDIS_UNAVAILABLE', { address, problem: 'it was given up' })));
    client.connect().catch(hopeless);
  });
}

async function nodesReady(cluster: Cluster): Promise<void> {
  const connecting = cluster.nodes('master').filter(({ status }) => status !== 'ready' && status !== 'end');
  await Promise.all(
    connecting.map((node) => new Promise((settle) => void node.once('ready', settle).once('end', settle))),
  );
}

/** EXEC and DISCARD end a WATCH; a work that did neither must not leave its watches to the next borrower. */
async function unwatched(client: RedisClient): Promise<boolean> {
  const connections = client instanceof Cluster ? client.nodes('master') : [client];
  const replies = await Promise.all(connections.map((one) => one.unwatch())).catch(() => []);
  // Inside a MULTI that was left open it is only queued.
  return replies.length > 0 && replies.every((reply) => reply === 'OK');
}

async function serverInfo(client: RedisClient): Promise<ServerInfo> {
  const info = await client.info('server');
  const field = (name: string) => new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1];
  const valkey = field('valkey_version');
  const version = valkey ?? field('redis_version') ?? '0';
  return { flavour: valkey ? 'valkey' : 'redis', version, major: Number.parseInt(version, 10) };
}
