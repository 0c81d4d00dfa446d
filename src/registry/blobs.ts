import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { MAX_MANIFEST_BYTES } from './manifest-text.ts';

const TTL_SECONDS = 90 * 24 * 3600;
const AT_ONCE = 100;

/** The blob cache: asset:blob:SHA. Content-addressed, so a hit is always right, and a rename, a revert or a repair costs nothing. */
export class Blobs {
  readonly #client: () => RedisClient;
  readonly #keys: Keyspace;

  constructor(client: () => RedisClient, keys: Keyspace) {
    this.#client = client;
    this.#keys = keys;
  }

  /** Which of these are here; each that is lives on for another 90 days. */
  async has(shas: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const chunk of chunks([...new Set(shas)], 10 * AT_ONCE)) {
      const renewed = await Promise.all(
        chunk.map((sha) => this.#client().expire(this.#keys.assetBlob(sha), TTL_SECONDS)),
      );
      chunk.forEach((sha, at) => {
        if (renewed[at] === 1) found.add(sha);
      });
    }
    return found;
  }

  async get(shas: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>();
    for (const chunk of chunks([...new Set(shas)], AT_ONCE)) {
      const values = await this.#client().mgetBuffer(...chunk.map((sha) => this.#keys.assetBlob(sha)));
      chunk.forEach((sha, at) => {
        const bytes = values[at];
        if (bytes) found.set(sha, bytes);
      });
    }
    return found;
  }

  /** Blobs too large to be manifests are not kept. The caller has verified that the bytes have this SHA. */
  async put(blobs: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const kept = [...blobs].filter(([, bytes]) => bytes.byteLength <= MAX_MANIFEST_BYTES);
    for (const chunk of chunks(kept, AT_ONCE)) {
      await Promise.all(
        chunk.map(([sha, bytes]) => this.#client().set(this.#keys.assetBlob(sha), asBuffer(bytes), 'EX', TTL_SECONDS)),
      );
    }
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function* chunks<T>(all: readonly T[], size: number): Iterable<T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
