import { ReeveError } from '../errors.ts';
import type { AssetId } from '../redis/ids.ts';
import type { Hold } from '../registry/holds.ts';
import type { ParsePool } from '../registry/parse-pool.ts';
import {
  type Listing as Candidates,
  type Known,
  type Plan,
  pathsToParse,
  rememberedListing,
} from '../registry/plan.ts';
import type { PublishStep } from '../registry/publish.ts';
import { configFingerprint, type Registry } from '../registry/registry.ts';
import { candidates, differ, isSame } from './differ.ts';
import { fetchManifests } from './fetch-manifests.ts';
import type { Head, NamedSource } from './source.ts';

export const PHASES = ['resolve', 'list', 'fetch', 'publish'] as const;
export type Phase = (typeof PHASES)[number];

export interface Progress {
  readonly phase: Phase;
  readonly done: number;
  readonly total: number;
  /** Of a publish: the step that is done. */
  readonly step?: PublishStep | undefined;
}

const PUBLISH_STEPS: readonly PublishStep[] = ['cleared', 'read', 'staged', 'committed', 'told'];

export interface SyncQuestion {
  /** Believe nothing of what is known: list and read everything again. */
  readonly full?: boolean | undefined;
  /** Say what would change, and change nothing. */
  readonly dryRun?: boolean | undefined;
  /** What the source called itself when it was first synced; undefined takes whoever answers. */
  readonly identity?: string | undefined;
  /** A commit that a webhook has told of. */
  readonly barrier?: string | undefined;
}

/** What a sync came to. Only 'published' and 'repaired' have changed anything that readers see. */
export type SyncOutcome = {
  readonly commit: string | undefined;
  readonly identity?: string | undefined;
} & (
  | { readonly outcome: 'unchanged' }
  /** The webhook's commit is not visible yet: ask again soon. */
  | { readonly outcome: 'lagging' }
  | { readonly outcome: 'repaired'; readonly ids: readonly AssetId[] }
  | { readonly outcome: 'planned'; readonly plan: Plan }
  | { readonly outcome: 'held'; readonly hold: Hold; readonly plan: Plan }
  | {
      readonly outcome: 'published';
      readonly plan: Plan;
      readonly generation: number;
      /** What it kept back for the first time. */
      readonly held: readonly Hold[];
    }
);

export interface Reconciler {
  readonly named: NamedSource;
  readonly registry: Registry;
  readonly pool: ParsePool;
  readonly fence: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** Someone may publish, or change the source, between our look and our publish; then everything is looked at again. */
const TRIES = 3;

const isMoved = (error: unknown): boolean => error instanceof ReeveError && error.code === 'SOURCE_MOVED';

/**
 * One sync, in four phases: resolve (which commit), list (what is there), fetch (what we have not), publish (all at once).
 * Nothing before the publish changes what readers see, so a sync may fail or be killed anywhere.
 */
export async function reconcile(work: Reconciler, question: SyncQuestion): Promise<SyncOutcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await reconcileOnce(work, question).catch((error: unknown) => {
      if (isMoved(error) && attempt < TRIES) return 'moved' as const;
      throw error;
    });
    if (outcome === 'moved') continue;
    if (outcome !== 'stale') return outcome;
    if (attempt >= TRIES)
      throw new ReeveError('SYNC_BUSY', { source: work.named.name, holder: 'another daemon', since: 'now' });
  }
}

async function reconcileOnce(work: Reconciler, question: SyncQuestion): Promise<SyncOutcome | 'stale'> {
  const { registry, named, onProgress } = work;
  const { include, source } = named;
  const fingerprint = configFingerprint({ address: source.address, include, guards: registry.guards });

  onProgress({ phase: 'resolve', done: 0, total: 1 });
  const repaired = question.dryRun ? { ids: [], isLost: false } : await heal(work);
  const known = await registry.known();
  const isWhole = known.commit !== undefined && !question.full && !repaired.isLost;
  const seen = waitingCommit(known) ?? known.commit;
  const head = await askHead(work, question, isWhole ? seen : undefined);
  const isReleased = head.outcome === 'unchanged' && (await registry.hasReleased());
  onProgress({ phase: 'resolve', done: 1, total: 1 });
  if (head.outcome === 'unchanged' && !isReleased && known.configFingerprint === fingerprint) {
    const { commit } = known;
    if (question.barrier && question.barrier !== seen) return { outcome: 'lagging', commit };
    await settle(work, question);
    return repaired.ids.length > 0
      ? { outcome: 'repaired', commit, ids: repaired.ids }
      : { outcome: 'unchanged', commit };
  }

  const commit = head.outcome === 'at' ? head.commit : (isReleased ? known.commit : seen)!;
  const identity = head.outcome === 'at' ? head.identity : undefined;
  if (!question.dryRun) await registry.mark({ sync_status: 'syncing', fence: work.fence });
  const believed: Known = isWhole ? known : { ...known, configFingerprint: undefined };
  const { listing, totalBytes } = await list(work, commit, isReleased ? rememberedListing(known) : undefined);

  const paths = pathsToParse(believed, listing, fingerprint);
  const ask = { identity: question.identity, previous: known.commit, signal: work.signal, totalBytes };
  const files = new Map(paths.map((path) => [path, listing.entries.get(path)!]));
  const parsed = await fetchManifests({
    source,
    blobs: registry.blobs,
    pool: work.pool,
    commit,
    files,
    ask,
    onProgress: (done, total) => onProgress({ phase: 'fetch', done, total }),
  });
  const isOther = known.commit !== undefined && known.commit !== commit;
  const hasChanged = isOther && !isSame(differ(known.paths, listing.entries));
  const { descends } = hasChanged ? await source.confirm(commit, ask) : { descends: undefined };

  const plan = await registry.plan(believed, { ...listing, rewritesHistory: descends === false }, parsed);
  if (question.dryRun) return { outcome: 'planned', commit, plan };
  if (plan.held) {
    await registry.hold(plan.held);
    await settle(work, question);
    return { outcome: 'held', commit: known.commit, identity, hold: plan.held, plan };
  }
  work.signal.throwIfAborted();
  const total = PUBLISH_STEPS.length;
  onProgress({ phase: 'publish', done: 0, total });
  const published = await registry.publish({
    plan,
    source: named.name,
    previousCommit: known.commit,
    fence: work.fence,
    configFingerprint: fingerprint,
    progress: (step) => onProgress({ phase: 'publish', done: PUBLISH_STEPS.indexOf(step) + 1, total, step }),
  });
  if (published.outcome === 'stale') {
    if (published.fence > work.fence)
      throw new ReeveError('SYNC_BUSY', { source: named.name, holder: 'another daemon', since: 'now' });
    return 'stale';
  }
  const held = plan.holds.filter(({ id }) => !known.holds.has(id));
  return { outcome: 'published', commit, identity, plan, generation: published.generation, held };
}

/** A registry that does not add up is not believed. Repair needs no source while the blob cache has what is served. */
async function heal({
  registry,
  named,
  fence,
  signal,
}: Reconciler): Promise<{ ids: readonly AssetId[]; isLost: boolean }> {
  const health = await registry.check();
  if (health.outcome === 'sound') return { ids: [], isLost: false };
  if (health.outcome === 'lost') return { ids: [], isLost: true };
  let repaired = await registry.repair(fence);
  if (repaired.outcome === 'missing') {
    const { commit, paths } = await registry.known();
    const missing = new Set(repaired.shas);
    const wanted = [...paths].flatMap(([path, { sha }]) =>
      sha && missing.has(sha) ? [{ path, sha, mode: '100644', size: 0 }] : [],
    );
    const found = new Map<string, Uint8Array>();
    for await (const { sha, bytes } of named.source.read(commit!, wanted, { signal })) found.set(sha, bytes);
    await registry.blobs.put(found);
    repaired = await registry.repair(fence);
  }
  return repaired.outcome === 'repaired' ? { ids: repaired.ids, isLost: false } : { ids: [], isLost: true };
}

/** The commit that waits for a person as a whole. It has been looked at: while it is the head, nothing is new. */
const waitingCommit = ({ holds }: Known): string | undefined =>
  [...holds.values()].find(({ kind, released }) => kind === 'history-rewrite' && !released)?.commit;

async function askHead(
  { named, signal }: Reconciler,
  { identity }: SyncQuestion,
  known: string | undefined,
): Promise<Head> {
  return named.source.head({ known, identity, signal });
}

async function list({ named, signal, onProgress }: Reconciler, commit: string, remembered: Candidates | undefined) {
  if (remembered) return { listing: remembered, totalBytes: undefined };
  onProgress({ phase: 'list', done: 0, total: 1 });
  const listed = await named.source.list(commit, signal);
  onProgress({ phase: 'list', done: 1, total: 1 });
  const totalBytes = listed.entries.reduce((sum, { size }) => sum + size, 0);
  return { listing: await candidates(listed, named.include), totalBytes };
}

/** A sync that was killed, or never heard that it had published, left events untold and the word 'syncing' behind. */
async function settle({ registry, fence }: Reconciler, { dryRun }: SyncQuestion): Promise<void> {
  if (dryRun) return;
  await registry.tellRest();
  const { sync_status } = await registry.state();
  if (sync_status !== 'idle') await registry.mark({ sync_status: 'idle', fence });
}
