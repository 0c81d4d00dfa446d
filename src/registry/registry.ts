import { hash } from 'node:crypto';
import type { Connection } from '../redis/connection.ts';
import type { AssetId } from '../redis/ids.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../redis/keys.ts';
import type { StoredAsset } from './asset.ts';
import { Blobs } from './blobs.ts';
import { Catalogue } from './catalogue.ts';
import { DEFAULT_GUARDS, type Guards } from './guards.ts';
import { assetIn, checkHealth, type Health, parsePaths, type Walk } from './health.ts';
import { History } from './history.ts';
import { type Hold, parseHolds } from './holds.ts';
import { createManifestParser, PARSER_VERSION, type Parsed } from './manifest.ts';
import { drainOutbox } from './outbox.ts';
import type { ParsePool } from './parse-pool.ts';
import type { PathRecord, Paths } from './path-record.ts';
import { type Known, type Listing, makePlan, type Plan } from './plan.ts';
import { type Publication, type Published, type PublishOptions, publish } from './publish.ts';
import { releaseHold } from './release-hold.ts';
import { type Repaired, repair } from './repair.ts';
import { type SyncState, stateOf } from './state.ts';

export interface RegistryOptions {
  readonly connection: Connection;
  readonly mode: KeyspaceOptions['mode'];
  /** Undefined is the one whose keys have the plain names. */
  readonly namespace?: string | undefined;
  readonly pool: ParsePool;
  readonly guards?: Guards;
  readonly keepEvents?: number;
  /** Which daemon this is, for the audit. */
  readonly service?: string;
}

const DAY = 24 * 3600;

/** One namespace of assets: what there is, what there was, and the only way to change it. */
export class Registry {
  readonly namespace: string | undefined;
  readonly blobs: Blobs;
  readonly catalogue: Catalogue;
  readonly history: History;
  readonly guards: Guards;
  readonly #connection: Connection;
  readonly #keys: Keyspace;
  readonly #pool: ParsePool;
  readonly #publishing: PublishOptions;
  readonly #service: string;
  readonly #walk: Walk = { next: 0 };
  #renewedAt = 0;

  constructor(options: RegistryOptions) {
    const { connection, mode, namespace, pool, guards = DEFAULT_GUARDS, keepEvents = 10_000 } = options;
    this.namespace = namespace;
    this.guards = guards;
    this.#connection = connection;
    this.#keys = keyspace({ mode, ...(namespace !== undefined && { namespace }) });
    this.#pool = pool;
    this.#service = options.service ?? '';
    const common = namespace === undefined ? undefined : { stream: keyspace({ mode }).assetSyncEvents(), namespace };
    this.#publishing = { connection, keys: this.#keys, keepEvents, common };
    const client = () => connection.commands;
    this.blobs = new Blobs(client, this.#keys);
    this.catalogue = new Catalogue(client, this.#keys);
    this.history = new History({ client, keys: this.#keys, blobs: this.blobs, parse: createManifestParser() });
  }

  async state(): Promise<SyncState> {
    return stateOf(await this.#connection.commands.hgetall(this.#keys.assetSyncState()));
  }

  async paths(): Promise<Paths> {
    return parsePaths(await this.#connection.commands.hgetall(this.#keys.assetSyncPaths()));
  }

  async path(path: string): Promise<PathRecord | undefined> {
    const json = await this.#connection.commands.hget(this.#keys.assetSyncPaths(), path);
    return json === null ? undefined : (await parsePaths({ path: json })).get('path');
  }

  /** State, path records and holds, of one moment. */
  async known(): Promise<Known> {
    const { commands } = this.#connection;
    const [time] = await commands.time();
    const read = await commands
      .multi()
      .hgetall(this.#keys.assetSyncState())
      .hgetall(this.#keys.assetSyncPaths())
      .hgetall(this.#keys.assetSyncHolds())
      .exec();
    const [state, paths, holds] = (read ?? []).map(([error, answer]) => {
      if (error) throw error;
      return answer;
    }) as [Texts, Texts, Texts];
    const { last_commit_sha: commit, config_fingerprint: configFingerprint } = stateOf(state);
    return { at: Number(time), commit, configFingerprint, paths: await parsePaths(paths), holds: parseHolds(holds) };
  }

  async getMany(ids: Iterable<string>): Promise<ReadonlyMap<string, StoredAsset>> {
    const found = new Map<string, StoredAsset>();
    const all = [...new Set(ids)];
    for (let at = 0; at < all.length; at += 200) {
      const chunk = all.slice(at, at + 200) as AssetId[];
      const hashes = await Promise.all(
        chunk.map((id) => this.#connection.commands.hgetall(this.#keys.assetMetadata(id))),
      );
      for (const fields of hashes) {
        const asset = assetIn(fields);
        if (asset) found.set(asset.id, asset);
      }
    }
    return found;
  }

  /** What publishing a listing would do; nothing is written. */
  async plan(known: Known, listing: Listing, parsed: ReadonlyMap<string, Parsed>): Promise<Plan> {
    const ids = [...parsed.values()].flatMap((one) => (one.outcome === 'ok' ? [one.asset.id] : []));
    const current = known.commit === undefined ? new Map<string, StoredAsset>() : await this.getMany(ids);
    return makePlan({ known, listing, parsed, current, guards: this.guards });
  }

  publish(publication: Publication): Promise<Published> {
    return publish(this.#publishing, publication);
  }

  /** Tells what a publish that was cut off after its transaction had still to tell. */
  tellRest(): Promise<number> {
    return drainOutbox(this.#publishing);
  }

  /** sync_status and last_error. Says nothing when a newer sync has begun: its word counts. */
  async mark({ sync_status, last_error, fence }: Mark): Promise<void> {
    const { commands } = this.#connection;
    const newest = Number((await commands.get(this.#keys.assetSyncFence())) ?? 0);
    if (newest > fence) return;
    const key = this.#keys.assetSyncState();
    if (last_error === undefined) await commands.hset(key, { sync_status });
    else await commands.hset(key, { sync_status, last_error });
  }

  /** Compares Redis with the digest. Run it on every poll, before believing that nothing changed. */
  async check(): Promise<Health> {
    const health = await checkHealth(this.#connection.commands, this.#keys, this.#walk);
    if (health.outcome === 'sound') await this.#renewBlobs();
    return health;
  }

  /** Rewrites what check() finds, from the blob cache, without asking the source. */
  repair(fence: number): Promise<Repaired> {
    return repair({
      publishing: this.#publishing,
      pool: this.#pool,
      blobs: this.blobs,
      check: () => this.check(),
      known: () => this.known(),
      getMany: (ids) => this.getMany(ids),
      fence,
    });
  }

  /** Records a hold of a whole change (plan.held). */
  async hold(hold: Hold): Promise<void> {
    await this.#connection.commands.hset(this.#keys.assetSyncHolds(), hold.id, JSON.stringify(hold));
  }

  async holds(): Promise<readonly Hold[]> {
    return [...parseHolds(await this.#connection.commands.hgetall(this.#keys.assetSyncHolds())).values()];
  }

  /** Lets a held change through at the next sync. Undefined: there is no such hold. */
  release(id: string, by: string, reason: string): Promise<Hold | undefined> {
    return releaseHold({ connection: this.#connection, keys: this.#keys, service: this.#service }, id, by, reason);
  }

  /** A released hold waits for a sync, although the commit is unchanged. */
  async hasReleased(): Promise<boolean> {
    return (await this.holds()).some(({ released }) => released !== undefined);
  }

  /** Blobs that are served must not expire: a repair needs them. */
  async #renewBlobs(): Promise<void> {
    const now = Number((await this.#connection.commands.time())[0]);
    if (now - this.#renewedAt < DAY) return;
    this.#renewedAt = now;
    const records = [...(await this.paths()).values()];
    await this.blobs.has(records.flatMap(({ sha, good }) => [sha, good].filter((one) => one !== undefined)));
  }
}

/** What makes the same files read differently: a change of any of these reads them all again. */
export const configFingerprint = (parts: Readonly<Record<string, unknown>>): string =>
  hash('sha256', JSON.stringify([PARSER_VERSION, Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1))])).slice(
    0,
    32,
  );

interface Mark {
  readonly sync_status: SyncState['sync_status'];
  readonly last_error?: string;
  readonly fence: number;
}

type Texts = Readonly<Record<string, string>>;
