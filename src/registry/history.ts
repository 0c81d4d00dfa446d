import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { ReeveError } from '../errors.ts';
import type { RedisClient } from '../redis/connection.ts';
import { isId } from '../redis/ids.ts';
import type { Keyspace } from '../redis/keys.ts';
import { type Asset, fieldsOf } from './asset.ts';
import type { Blobs } from './blobs.ts';
import { list } from './history-writes.ts';
import type { ParseManifest } from './manifest.ts';
import type { ChangeOp } from './plan.ts';

/** One thing that happened to an asset. Times are Unix seconds. */
export interface TimelineEntry {
  readonly op: ChangeOp;
  readonly at: number;
  readonly generation: number;
  readonly commit: string;
  readonly path: string;
  readonly version?: string;
  /** The blob after it; of a removal the one before. */
  readonly sha?: string;
  readonly successor?: string;
  readonly author?: string;
}

/** Bytes that were published under a version. A version with more than one was changed after its release. */
export interface Release {
  readonly sha: string;
  readonly commit: string;
  readonly path: string;
  readonly at: number;
}

/** An entry of the timeline, with what only a look at the other releases of its version shows. */
export interface VersionEntry extends TimelineEntry {
  /** Other bytes were released under this version before. */
  readonly same_version_other_bytes: boolean;
}

export interface Difference {
  readonly from: Named;
  readonly to: Named;
  readonly differs: boolean;
  /** Fields of the manifest that differ. */
  readonly fields: readonly string[];
  /** Unified diff of the two files. */
  readonly patch: string;
}
export interface Named {
  readonly label: string;
  readonly version?: string;
  readonly sha: string;
}

export interface HistoryOptions {
  readonly client: () => RedisClient;
  readonly keys: Keyspace;
  readonly blobs: Blobs;
  readonly parse: ParseManifest;
}

/** What assets were: their versions, any one of them, and what lies between two. */
export class History {
  readonly #options: HistoryOptions;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Oldest first. Empty for an asset that never was. */
  async timeline(id: string): Promise<readonly VersionEntry[]> {
    const { client, keys } = this.#options;
    if (!isId('asset', id)) return [];
    const entries = list<TimelineEntry>(await client().hget(keys.assetVersions(), id));
    const first = new Map<string, string>();
    return entries.map((entry) => {
      const { version, sha, op } = entry;
      if (!version || !sha || op === 'removed') return { ...entry, same_version_other_bytes: false };
      if (!first.has(version)) first.set(version, sha);
      return { ...entry, same_version_other_bytes: first.get(version) !== sha };
    });
  }

  async releases(id: string, version: string): Promise<readonly Release[]> {
    const { client, keys } = this.#options;
    if (!isId('asset', id) || !isId('version', version)) return [];
    return list<Release>(await client().get(keys.assetVersion(id, version)));
  }

  /** The asset as it was when this commit was published; the beginning of a SHA will do. Undefined: it was not there then. */
  async asOf(id: string, commit: string): Promise<Asset | undefined> {
    const generation = await this.#generationOf(commit);
    const entries = (await this.timeline(id)).filter((entry) => entry.generation <= generation);
    const last = entries.at(-1);
    return last?.sha && last.op !== 'removed' ? this.#read(last) : undefined;
  }

  /** The newest release of a version. The timeline knows it from the moment of the publish, but forgets what is long ago. */
  async atVersion(id: string, version: string): Promise<Asset | undefined> {
    const recent = (await this.timeline(id)).findLast((entry) => entry.version === version && entry.op !== 'removed');
    const release = recent ?? (await this.releases(id, version)).at(-1);
    return release && this.#read(release);
  }

  /** Between two of an asset's versions, commits or blobs. */
  async diff(id: string, from: string, to: string): Promise<Difference> {
    const [a, b] = [await this.#find(id, from), await this.#find(id, to)];
    const texts = await this.#options.blobs.get([a.sha, b.sha]);
    const textOf = ({ sha, label }: Named) => {
      const bytes = texts.get(sha);
      if (!bytes) throw new ReeveError('BLOB_GONE', { id, what: label, sha });
      return new TextDecoder().decode(bytes);
    };
    const [before, after] = [textOf(a), textOf(b)];
    const name = ({ path, label }: { path: string; label: string }) => `${path}@${label}`;
    const patch =
      a.sha === b.sha
        ? ''
        : createTwoFilesPatch(name(a), name(b), before, after, '', '', {
            context: 3,
            headerOptions: FILE_HEADERS_ONLY,
          });
    return { from: plain(a), to: plain(b), differs: a.sha !== b.sha, fields: await this.#fieldsBetween(a, b), patch };
  }

  async #fieldsBetween(a: Found, b: Found): Promise<string[]> {
    if (a.sha === b.sha) return [];
    const [one, other] = [await this.#read(a), await this.#read(b)].map((asset) =>
      asset ? fieldsOf({ ...asset, created_at: 0, updated_at: 0 }) : {},
    ) as [Record<string, string>, Record<string, string>];
    const names = new Set([...Object.keys(one), ...Object.keys(other)]);
    names.delete('github_sha');
    return [...names].filter((field) => one[field] !== other[field]);
  }

  async #find(id: string, what: string): Promise<Found> {
    const entries = (await this.timeline(id)).filter(({ sha, op }) => sha && op !== 'removed');
    const byVersion = entries.findLast(({ version }) => version === what);
    const bySha = /^[0-9a-f]{4,64}$/.test(what)
      ? entries.findLast(({ sha, commit }) => sha?.startsWith(what) || commit.startsWith(what))
      : undefined;
    const entry = byVersion ?? bySha;
    if (!entry?.sha) throw new ReeveError('NO_SUCH_VERSION', { id, version: what });
    return { label: what, sha: entry.sha, path: entry.path, ...(entry.version && { version: entry.version }) };
  }

  async #generationOf(commit: string): Promise<number> {
    const { client, keys } = this.#options;
    const log = await client().lrange(keys.assetSyncCommits(), 0, -1);
    const found = log
      .map((json) => JSON.parse(json) as { commit: string; generation: number })
      .findLast((entry) => commit.length >= 4 && entry.commit.startsWith(commit));
    if (!found) throw new ReeveError('NO_SUCH_COMMIT', { commit });
    return found.generation;
  }

  async #read({ sha, path }: { readonly sha?: string; readonly path: string }): Promise<Asset | undefined> {
    if (!sha) return undefined;
    const bytes = (await this.#options.blobs.get([sha])).get(sha);
    if (!bytes) throw new ReeveError('BLOB_GONE', { id: path, what: sha, sha });
    const parsed = this.#options.parse({ path, sha, bytes });
    return parsed.outcome === 'ok' ? parsed.asset : undefined;
  }
}

interface Found extends Named {
  readonly path: string;
}

const plain = ({ label, version, sha }: Found): Named => ({ label, sha, ...(version && { version }) });
