import { ReeveError } from '../errors.ts';
import type { StoredAsset, Summary } from './asset.ts';
import type { Page } from './catalogue.ts';
import type { Category } from './category.ts';
import type { Difference, VersionEntry } from './history.ts';
import type { Hold } from './holds.ts';
import type { PathRecord } from './path-record.ts';
import type { Registry } from './registry.ts';

/** A registry under the name of the source that fills it. */
export interface Shelf {
  readonly name: string;
  readonly registry: Registry;
}

export interface Question {
  readonly q?: string | undefined;
  readonly category?: Category | undefined;
  readonly source?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface ListedAsset extends Summary {
  readonly source: string;
}

export interface AssetPage {
  readonly items: readonly ListedAsset[];
  readonly next_cursor?: string;
  readonly total: number;
  readonly is_cut?: boolean;
}

export interface FoundAsset extends StoredAsset {
  readonly source: string;
  /** The file it came from is no longer good; this is its last good version. */
  readonly stale?: { readonly status: string; readonly since?: number; readonly problem?: PathRecord['problem'] };
}

export interface PathReport extends PathRecord {
  readonly path: string;
  readonly source: string;
}

export interface SourceHold extends Hold {
  readonly source: string;
}

/** All assets of all sources, as people and agents ask for them. Where two sources have an id, the one named first has it. */
export class Library {
  readonly #shelves: readonly Shelf[];

  constructor(shelves: readonly Shelf[]) {
    this.#shelves = shelves;
  }

  /** A page in the order of ids; with a question, best match first, source by source. */
  async list({ q, category, source, limit, cursor }: Question): Promise<AssetPage> {
    const shelves = this.#named(source);
    const place = readCursor(cursor, shelves);
    const items: ListedAsset[] = [];
    let total = 0;
    let isCut = false;
    let next: string | undefined;
    for (const [at, { name, registry }] of shelves.entries()) {
      const isPast = at < place.shelf;
      const room = limit - items.length;
      const after = at === place.shelf ? place.after : undefined;
      const page = await look(registry, q, {
        category,
        limit: isPast || room <= 0 ? 1 : room,
        after: isPast ? undefined : after,
      });
      total += page.total;
      isCut ||= page.isCut ?? false;
      if (isPast) continue;
      if (room <= 0) {
        next ??= page.total > 0 ? writeCursor({ shelf: at }) : undefined;
        continue;
      }
      for (const item of page.items) items.push({ ...item, source: name });
      if (page.next !== undefined) next ??= writeCursor({ shelf: at, after: page.next });
    }
    return { items, total, ...(next !== undefined && { next_cursor: next }), ...(isCut && { is_cut: true }) };
  }

  /** The asset as it is; or as it was at a version or when a commit was published. */
  async get(id: string, { source, version, asOf }: Look = {}): Promise<FoundAsset> {
    const asked = version ?? asOf;
    const unknown = () => new ReeveError('NO_SUCH_ASSET', { id, where: asked ? ` at ${asked}` : '' });
    let problem: unknown;
    for (const { name, registry } of this.#named(source)) {
      if (asOf === undefined && version === undefined) {
        const asset = await registry.catalogue.get(id);
        if (asset) return { ...asset, source: name, ...(await staleness(registry, asset)) };
        continue;
      }
      try {
        const { history } = registry;
        const old = asOf === undefined ? await history.atVersion(id, version!) : await history.asOf(id, asOf);
        if (old) return { ...old, source: name, ...(await times(registry, id, old.github_sha)) };
      } catch (error) {
        problem ??= error;
      }
    }
    throw problem ?? unknown();
  }

  /** Which shelf has it, to change it. */
  async find(id: string, source?: string): Promise<{ readonly shelf: Shelf; readonly asset: StoredAsset }> {
    for (const shelf of this.#named(source)) {
      const asset = await shelf.registry.catalogue.get(id);
      if (asset) return { shelf, asset };
    }
    throw new ReeveError('NO_SUCH_ASSET', { id, where: source ? ` in ${source}` : '' });
  }

  /** Where a new asset goes: the named source, or the first. */
  shelf(source?: string): Shelf {
    return this.#named(source)[0]!;
  }

  async versions(id: string, source?: string): Promise<readonly VersionEntry[]> {
    for (const { registry } of this.#named(source)) {
      const entries = await registry.history.timeline(id);
      if (entries.length > 0) return entries;
    }
    throw new ReeveError('NO_SUCH_ASSET', { id, where: '' });
  }

  async diff(id: string, from: string, to: string, source?: string): Promise<Difference> {
    for (const { registry } of this.#named(source)) {
      if ((await registry.history.timeline(id)).length > 0) return registry.history.diff(id, from, to);
    }
    throw new ReeveError('NO_SUCH_ASSET', { id, where: '' });
  }

  /** Every file that is not simply good: bad, in conflict, held, skipped; and good ones with warnings. */
  async reports(source?: string): Promise<readonly PathReport[]> {
    const all = await Promise.all(
      this.#named(source).map(async ({ name, registry }) =>
        [...(await registry.paths())]
          .filter(([, { status, warnings }]) => status !== 'ok' || warnings)
          .map(([path, record]): PathReport => ({ path, source: name, ...record })),
      ),
    );
    return all.flat().sort((a, b) => a.source.localeCompare(b.source) || (a.path < b.path ? -1 : 1));
  }

  async holds(source?: string): Promise<readonly SourceHold[]> {
    const all = await Promise.all(
      this.#named(source).map(async ({ name, registry }) =>
        (await registry.holds()).map((hold): SourceHold => ({ ...hold, source: name })),
      ),
    );
    return all.flat();
  }

  async release(id: string, by: string, reason: string): Promise<SourceHold> {
    for (const { name, registry } of this.#shelves) {
      const hold = await registry.release(id, by, reason);
      if (hold) return { ...hold, source: name };
    }
    throw new ReeveError('NO_SUCH_HOLD', { id });
  }

  #named(source: string | undefined): readonly Shelf[] {
    if (source === undefined) return this.#shelves;
    const found = this.#shelves.filter(({ name }) => name === source);
    if (found.length > 0) return found;
    throw new ReeveError('NO_SUCH_SOURCE', { name: source, known: this.#shelves.map(({ name }) => name).join(', ') });
  }
}

interface Look {
  readonly source?: string | undefined;
  readonly version?: string | undefined;
  readonly asOf?: string | undefined;
}

const look = (
  { catalogue }: Registry,
  q: string | undefined,
  filter: Parameters<Registry['catalogue']['list']>[0],
): Promise<Page> => (q === undefined || q.trim() === '' ? catalogue.list(filter) : catalogue.search(q, filter));

async function staleness(registry: Registry, { github_path, id }: StoredAsset): Promise<Pick<FoundAsset, 'stale'>> {
  const record = await registry.path(github_path);
  if (!record || record.status === 'ok' || record.id !== id) return {};
  const { status, since, problem } = record;
  return { stale: { status, ...(since !== undefined && { since }), ...(problem && { problem }) } };
}

/** When old bytes came, and when the asset did. */
async function times(registry: Registry, id: string, sha: string) {
  const entries = await registry.history.timeline(id);
  const created_at = entries[0]?.at ?? 0;
  return { created_at, updated_at: entries.find((entry) => entry.sha === sha)?.at ?? created_at };
}

interface Place {
  readonly shelf: number;
  readonly after?: string;
}

const writeCursor = ({ shelf, after = '' }: Place): string => Buffer.from(`${shelf}:${after}`).toString('base64url');

function readCursor(cursor: string | undefined, shelves: readonly Shelf[]): Place {
  if (cursor === undefined) return { shelf: 0 };
  const found = /^(\d{1,4}):(.{0,200})$/.exec(Buffer.from(cursor, 'base64url').toString());
  const shelf = Number(found?.[1]);
  if (!found || !(shelf < shelves.length)) throw new ReeveError('BAD_CURSOR', { cursor });
  return { shelf, ...(found[2] && { after: found[2] }) };
}
