import type { Connection, RedisClient } from '../../redis/connection.ts';

export type Heard = (word: string) => void;

/**
 * The locks' channels, each subscribed to once however many listen. What they say is a hint that asking may pay off:
 * words may be missed, repeated or forged, and nothing but time is lost by it.
 */
export class LockChannels {
  readonly #connection: Connection;
  readonly #listeners = new Map<string, Set<Heard>>();
  readonly #wired = new WeakSet<RedisClient>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves when words are heard from now on. Returns how to stop. */
  async listen(channel: string, heard: Heard): Promise<() => void> {
    const known = this.#listeners.get(channel);
    const listeners = known ?? new Set();
    listeners.add(heard);
    if (!known) this.#listeners.set(channel, listeners);
    // Also for one who finds others listening: they may not have been heard yet.
    await this.#subscribe(channel);
    return () => {
      listeners.delete(heard);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      void this.#unsubscribe(channel);
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
    if (this.#listeners.has(channel)) await this.#subscribe(channel).catch(() => {});
  }

  get #isSharded(): boolean {
    return this.#connection.mode === 'cluster' && this.#connection.server.major >= 7;
  }

  #client(): RedisClient {
    const client = this.#connection.subscriber;
    if (this.#wired.has(client)) return client;
    this.#wired.add(client);
    const tell = (channel: string, word: string) => {
      for (const heard of this.#listeners.get(channel) ?? []) heard(word);
    };
    client.on('message', tell);
    client.on('smessage', tell);
    return client;
  }
}
