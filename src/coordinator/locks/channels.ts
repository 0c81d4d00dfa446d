import type { Connection, RedisClient } from '../../redis/connection.ts';

/** Called when one of its words is said. */
export interface Listener {
  readonly words: readonly string[];
  heard(): void;
}

export interface Listening {
  /** How often, since the channel was first listened to, someone was heard to get the lock. */
  grants(): number;
  stop(): void;
}

interface Channel {
  readonly listeners: Map<string, Set<Listener>>;
  /** It was subscribed to; after a break of the connection that is taken up again by itself. */
  isHeard: boolean;
  grants: number;
}

const GRANT = 'acquired:';

/**
 * The locks' channels, each subscribed to once however many listen. What they say is a hint that asking may pay off:
 * words may be missed, repeated or forged, and nothing but time is lost by it.
 */
export class LockChannels {
  readonly #connection: Connection;
  readonly #channels = new Map<string, Channel>();
  readonly #wired = new WeakSet<RedisClient>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves when words are heard from now on. */
  async listen(name: string, listener: Listener): Promise<Listening> {
    const channel = this.#channels.get(name) ?? { listeners: new Map(), isHeard: false, grants: 0 };
    this.#channels.set(name, channel);
    for (const word of listener.words) {
      const same = channel.listeners.get(word) ?? new Set();
      channel.listeners.set(word, same.add(listener));
    }
    // Also for one who finds others listening: they may not be heard yet, or not at the moment.
    if (!channel.isHeard || this.#client().status !== 'ready') {
      await this.#subscribe(name);
      channel.isHeard = true;
    }
    return { grants: () => channel.grants, stop: () => this.#stop(name, channel, listener) };
  }

  #stop(name: string, channel: Channel, listener: Listener): void {
    for (const word of listener.words) {
      const same = channel.listeners.get(word);
      if (same?.delete(listener) && same.size === 0) channel.listeners.delete(word);
    }
    if (channel.listeners.size > 0 || this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    void this.#unsubscribe(name);
  }

  async #subscribe(channel: string): Promise<void> {
    const client = this.#client();
    await (this.#isSharded ? client.ssubscribe(channel) : client.subscribe(channel));
  }

  async #unsubscribe(channel: string): Promise<void> {
    const client = this.#client();
    // A subscription that outlives its listeners says words to nobody.
    await (this.#isSharded ? client.sunsubscribe(channel) : client.unsubscribe(channel)).catch(() => {});
    if (this.#channels.has(channel)) await this.#subscribe(channel).catch(() => {});
  }

  get #isSharded(): boolean {
    return this.#connection.mode === 'cluster' && this.#connection.server.major >= 7;
  }

  #client(): RedisClient {
    const client = this.#connection.subscriber;
    if (this.#wired.has(client)) return client;
    this.#wired.add(client);
    const tell = (name: string, word: string) => {
      const channel = this.#channels.get(name);
      if (!channel) return;
      if (word.startsWith(GRANT)) channel.grants++;
      for (const listener of channel.listeners.get(word) ?? []) listener.heard();
    };
    client.on('message', tell);
    client.on('smessage', tell);
    return client;
  }
}
