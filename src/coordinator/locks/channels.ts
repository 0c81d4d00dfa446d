import type { Connection, RedisClient } from '../../redis/connection.ts';

export type Heard = (word: string) => void;

interface Channel {
  readonly listeners: Set<Heard>;
  /** It was subscribed to; after a break of the connection that is taken up again by itself. */
  isHeard: boolean;
}

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

  /** Resolves when words are heard from now on. Returns how to stop. */
  async listen(name: string, heard: Heard): Promise<() => void> {
    const channel = this.#channels.get(name) ?? { listeners: new Set(), isHeard: false };
    channel.listeners.add(heard);
    this.#channels.set(name, channel);
    // Also for one who finds others listening: they may not be heard yet, or not at the moment.
    if (!channel.isHeard || this.#client().status !== 'ready') {
      await this.#subscribe(name);
      channel.isHeard = true;
    }
    return () => {
      channel.listeners.delete(heard);
      if (channel.listeners.size > 0 || this.#channels.get(name) !== channel) return;
      this.#channels.delete(name);
      void this.#unsubscribe(name);
    };
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
    const tell = (channel: string, word: string) => {
      for (const heard of this.#channels.get(channel)?.listeners ?? []) heard(word);
    };
    client.on('message', tell);
    client.on('smessage', tell);
    return client;
  }
}
