import type { Pace } from '../clock.ts';
import type { AssetId } from '../redis/ids.ts';
import { type StoredAsset, sameContent } from './asset.ts';
import { type Claim, resolveClaims } from './claims.ts';
import { isMassDelete, widened } from './guards.ts';
import { type Hold, type HoldKind, holdId } from './holds.ts';
import type { Parsed } from './manifest.ts';
import { MAX_MANIFEST_BYTES, TOO_LARGE_HINT } from './manifest-text.ts';
import { type PathRecord, type Problem, servedSha } from './path-record.ts';
import type { Change, ListedFile, Plan, PlanInput } from './plan.ts';

interface Put {
  readonly asset: StoredAsset;
  readonly change: Change;
}

/** A plan while it is made. The methods are its steps, in their order. */
export class PlanDraft {
  readonly #input: PlanInput;
  readonly #served = new Map<string, { readonly path: string; readonly record: PathRecord }>();
  readonly #paths = new Map<string, PathRecord>();
  readonly #puts = new Map<string, Put>();
  readonly #removals = new Map<string, Change>();
  readonly #holds: Hold[] = [];

  constructor(input: PlanInput) {
    this.#input = input;
    for (const [path, record] of input.known.paths) if (record.id) this.#served.set(record.id, { path, record });
  }

  /** Gives every listed path its status and every id to one path. */
  async claim(pace: Pace): Promise<void> {
    const { listing, known, parsed } = this.#input;
    const claims: Claim[] = [];
    for (const [path, file] of listing.entries) {
      const before = known.paths.get(path);
      const read = refusal(file) ?? parsed.get(path);
      if (read?.outcome === 'ok') claims.push({ path, id: read.asset.id, asset: read.asset, warnings: read.warnings });
      else if (!read && before?.sha === file.sha && before.status === 'ok' && before.id)
        claims.push({ path, id: before.id });
      else this.#unreadable(path, file, read, before, claims);
      const pause = pace();
      if (pause) await pause;
    }
    if (!listing.complete) this.#keepUnlisted(claims);
    const isIncumbent = ({ id, path }: Claim) => this.#served.get(id)?.path === path;
    const { winners, losers } = resolveClaims(claims, isIncumbent);
    await pace();
    const taken = new Set([...winners.values()].map(({ id }) => id));
    for (const { claim, winner } of losers) this.#lose(claim, winner, taken);
    const beaten = Map.groupBy(losers, ({ winner }) => winner);
    for (const winner of winners.values()) {
      this.#win(winner, beaten.get(winner)?.map(({ claim }) => claim) ?? []);
      const pause = pace();
      if (pause) await pause;
    }
  }

  /** Ids that no path has any more. */
  remove(): void {
    if (!this.#input.listing.complete) return;
    const kept = new Set([...this.#paths.values()].flatMap(({ id }) => (id ? [id] : [])));
    for (const [id, { path, record }] of this.#served) {
      if (kept.has(id as AssetId)) continue;
      const successor = this.#paths.get(path)?.id;
      const old = servedSha(record);
      this.#removals.set(id, {
        op: 'removed',
        id: id as AssetId,
        path,
        ...(old && { old_blob: old }),
        ...(successor && { successor }),
      });
    }
  }

  /** An asset that asks for more stays as it was until a person agrees. */
  holdWidening(): void {
    const { current, guards } = this.#input;
    if (!guards.widening) return;
    for (const [id, { asset }] of this.#puts) {
      const before = current.get(id);
      const more = before ? widened(before, asset) : [];
      if (!before || more.length === 0) continue;
      const path = asset.github_path;
      const says = `${id} ${asset.version} asks for more than ${before.version}: ${more.join(', ')}`;
      const hold = this.#hold('permission-widening', says, [path], [id], [id, asset.github_sha]);
      if (!hold) continue;
      this.#puts.delete(id);
      this.#keepBack(path, hold, {
        id: asset.id,
        sha: asset.github_sha,
        good: before.github_sha,
        created_at: before.created_at,
        updated_at: before.updated_at,
      });
    }
  }

  /** Many deletions at once are more often an accident than a wish. */
  holdDeletions(): void {
    const gone = [...this.#removals.values()].filter(({ successor }) => !successor);
    if (!isMassDelete(gone.length, this.#served.size, this.#input.guards)) return;
    const ids = gone.map(({ id }) => id).sort();
    const says = `${gone.length} of ${this.#served.size} assets would be deleted`;
    const hold = this.#hold('mass-delete', says, gone.map(({ path }) => path).sort(), ids, ids);
    if (!hold) return;
    for (const { id, path } of gone) {
      this.#removals.delete(id);
      const { record } = this.#served.get(id)!;
      const sha = this.#paths.get(path)?.sha;
      const good = servedSha(record);
      const { created_at, updated_at } = record;
      this.#keepBack(path, hold, { id, created_at, updated_at, ...(sha && { sha }), ...(good && { good }) });
    }
  }

  finish(): Plan {
    const { listing } = this.#input;
    const puts = [...this.#puts.values()];
    const changes = [...puts.map(({ change }) => change), ...this.#removals.values()];
    const plan = {
      commit: listing.commit,
      puts: puts.map(({ asset }) => asset),
      removes: [...this.#removals.values()].map(({ id }) => id),
      changes,
      paths: this.#paths,
      holds: this.#holds,
    };
    if (!listing.rewritesHistory || !this.#input.guards.historyRewrite || changes.length === 0) return plan;
    const count = changes.length === 1 ? '1 asset' : `${changes.length} assets`;
    const says = `the commit does not descend from the one published; it would change ${count}`;
    const paths = changes.map(({ path }) => path).sort();
    const held = this.#hold('history-rewrite', says, paths, changes.map(({ id }) => id).sort(), [listing.commit]);
    return held ? { ...plan, holds: [...this.#holds], held } : plan;
  }

  #win(claim: Claim, losers: readonly Claim[]): void {
    const { known, listing, current } = this.#input;
    const { path, id, asset } = claim;
    const before = this.#served.get(id);
    const sha = listing.entries.get(path)?.sha ?? known.paths.get(path)?.sha;
    if (!asset) {
      const carried = claim.record ?? known.paths.get(path)!;
      this.#paths.set(path, withWarnings(carried, losers));
      return;
    }
    const created = before?.record.created_at ?? known.at;
    const now = current.get(id);
    const same: StoredAsset | undefined = now && { ...asset, created_at: now.created_at, updated_at: now.updated_at };
    const isSame = same !== undefined && now !== undefined && before !== undefined && sameContent(same, now);
    const stored: StoredAsset = { ...asset, created_at: created, updated_at: isSame ? now.updated_at : known.at };
    const warnings = [...(claim.warnings ?? []), ...this.#missingEntry(asset)];
    const record: PathRecord = {
      status: 'ok',
      ...(sha && { sha }),
      id,
      created_at: stored.created_at,
      updated_at: stored.updated_at,
      ...(warnings.length > 0 && { warnings }),
    };
    this.#paths.set(path, withWarnings(record, losers));
    if (isSame) return;
    this.#puts.set(id, { asset: stored, change: this.#changeOf(stored, before) });
  }

  #changeOf(asset: StoredAsset, before: { readonly path: string; readonly record: PathRecord } | undefined): Change {
    const { id, github_path: path, github_sha, version } = asset;
    const old = before && servedSha(before.record);
    const isMoved = before !== undefined && before.path !== path;
    return {
      op: !before ? 'added' : isMoved && old === github_sha ? 'moved' : 'changed',
      id,
      path,
      ...(isMoved && { from_path: before.path }),
      ...(old && { old_blob: old }),
      new_blob: github_sha,
      version,
    };
  }

  #lose(claim: Claim, winner: Claim, taken: ReadonlySet<string>): void {
    const { known, listing } = this.#input;
    const before = known.paths.get(claim.path);
    const sha = listing.entries.get(claim.path)?.sha;
    const spelt = winner.id === claim.id ? '' : ` (as ${winner.id})`;
    const problem: Problem = {
      code: 'DUPLICATE_ID',
      message: `the id ${claim.id} is taken by ${winner.path}${spelt}`,
      hint: 'Give one of the two another id.',
    };
    // A file that took over a foreign id goes on serving what it served, unless that has a new home.
    const keeps = before?.id && !taken.has(before.id) ? lastGood(before) : {};
    this.#paths.set(claim.path, {
      status: 'conflict',
      ...(sha && { sha }),
      ...keeps,
      since: before?.status === 'conflict' ? before.since : known.at,
      problem,
    });
  }

  /** Not a usable manifest: its last good version, if there was one, stays. */
  #unreadable(
    path: string,
    { sha }: ListedFile,
    read: Exclude<Parsed, { outcome: 'ok' }> | undefined,
    before: PathRecord | undefined,
    claims: Claim[],
  ): void {
    const { at } = this.#input.known;
    if (!read && before?.sha === sha) {
      if (before.id) claims.push({ path, id: before.id, record: before, isFallback: true });
      else this.#paths.set(path, before);
      return;
    }
    if (read?.outcome === 'skipped') {
      this.#paths.set(path, { status: 'skipped', sha, problem: { code: 'SKIPPED', message: read.reason } });
      return;
    }
    const { outcome: _outcome, ...problem } = read ?? UNFETCHED;
    const since = before?.status === 'bad' ? before.since : at;
    const record: PathRecord = { status: 'bad', sha, ...(before && lastGood(before)), since, problem };
    if (record.id) claims.push({ path, id: record.id, record, isFallback: true });
    else this.#paths.set(path, record);
  }

  #keepUnlisted(claims: Claim[]): void {
    const { known, listing } = this.#input;
    for (const [path, record] of known.paths) {
      if (listing.entries.has(path)) continue;
      if (record.id) claims.push({ path, id: record.id, record, isFallback: true });
      else this.#paths.set(path, record);
    }
  }

  #missingEntry({ runtime, github_path }: StoredAsset | NonNullable<Claim['asset']>): Problem[] {
    const { hasFile } = this.#input.listing;
    if (!hasFile || !runtime?.entry || runtime.language === 'none' || runtime.language === 'docker') return [];
    const folder = github_path.slice(0, github_path.lastIndexOf('/') + 1);
    const entry = folder + runtime.entry.replace(/^(?:\.\/)+/, '');
    if (hasFile(entry)) return [];
    return [{ code: 'ENTRY_MISSING', message: `runtime.entry: there is no file ${entry}` }];
  }

  /** The hold, or undefined if a person has released it. */
  #hold(kind: HoldKind, says: string, paths: readonly string[], assets: readonly string[], content: readonly string[]) {
    const { known, listing } = this.#input;
    const id = holdId(kind, ...content);
    const before = known.holds.get(id);
    if (before?.released) return undefined;
    const hold: Hold = { id, kind, commit: listing.commit, since: before?.since ?? known.at, says, paths, assets };
    this.#holds.push(hold);
    return hold;
  }

  #keepBack(path: string, hold: Hold, kept: Partial<PathRecord>): void {
    const problem: Problem = {
      code: hold.kind.toUpperCase().replaceAll('-', '_'),
      message: hold.says,
      hint: `To let it through: reeve asset release ${hold.id} --reason WHY`,
    };
    this.#paths.set(path, { ...kept, status: 'held', hold: hold.id, since: hold.since, problem });
  }
}

const UNFETCHED = { outcome: 'bad', code: 'UNREADABLE', message: 'the file could not be fetched' } as const;

/** What is refused unread. */
function refusal({ kind, size }: ListedFile): Exclude<Parsed, { outcome: 'ok' }> | undefined {
  if (kind === 'symlink') return { outcome: 'skipped', reason: 'it is a symbolic link' };
  if (kind === 'submodule') return { outcome: 'skipped', reason: 'it is a submodule' };
  if (size <= MAX_MANIFEST_BYTES) return undefined;
  const message = `the file has ${size} bytes, more than ${MAX_MANIFEST_BYTES}`;
  return { outcome: 'bad', code: 'TOO_LARGE', message, hint: TOO_LARGE_HINT };
}

/** The part of a record that says what is served. */
function lastGood(before: PathRecord): Partial<PathRecord> {
  const { id, created_at, updated_at } = before;
  const good = servedSha(before);
  return id && good ? { id, good, created_at, updated_at } : {};
}

function withWarnings(record: PathRecord, losers: readonly Claim[]): PathRecord {
  const own = (record.warnings ?? []).filter(({ code }) => code !== 'DUPLICATE_ID');
  const also = losers.map(({ path }): Problem => ({ code: 'DUPLICATE_ID', message: `${path} has the same id` }));
  const { warnings: _warnings, ...rest } = record;
  return own.length + also.length > 0 ? { ...rest, warnings: [...own, ...also] } : rest;
}
