import { ReeveError } from '../errors.ts';
import type { Explainer, Explanation, Hold as Held } from '../hold.ts';
import type { FoundAsset, Library, SourceHold } from './library.ts';

const IS_ASSET = /^asset:(.+)$/;

/** Why an asset is not served as its source has it; also for the id of a held change. */
export const explainAssets =
  (library: Library): Explainer =>
  async (ref) => {
    const id = IS_ASSET.exec(ref)?.[1];
    const holds = (await library.holds()).filter(({ released }) => !released);
    if (id === undefined) {
      const hold = holds.find((one) => one.id === ref);
      return hold && { subject: ref, state: 'held', says: `${hold.says}.`, holds: [heldBy(hold)], upstream: [] };
    }
    const asset = await library.get(id).catch((error: unknown) => {
      if (error instanceof ReeveError && error.code === 'NO_SUCH_ASSET') return undefined;
      throw error;
    });
    const own = holds.filter(({ assets }) => assets.includes(id));
    return asset || own.length > 0 ? explanation(ref, asset, own) : undefined;
  };

function explanation(subject: string, asset: FoundAsset | undefined, holds: readonly SourceHold[]): Explanation {
  const base = { subject, upstream: [], holds: holds.map(heldBy) };
  if (!asset) return { ...base, state: 'held', says: `${holds[0]!.says}.` };
  const { version, source, github_path: path, stale } = asset;
  const served = `Version ${version} is served, from ${path} of ${source}`;
  if (!stale) return { ...base, state: holds.length > 0 ? 'held' : 'served', says: `${served}.` };
  const why = stale.problem ? `: ${stale.problem.message}` : '';
  return { ...base, state: stale.status, says: `${served}; the file is ${stale.status} now${why}.` };
}

function heldBy({ id, since, says, kind, source }: SourceHold): Held {
  const release = `reeve asset release ${id} --reason WHY`;
  return {
    kind: 'policy',
    subject: id,
    holder: source,
    since: new Date(since * 1000).toISOString(),
    clears_at: null,
    because: `${says}.`,
    rule: kind,
    actions: [
      {
        label: 'Let it through',
        command: release,
        method: 'POST',
        url: `/api/v1/sync/holds/${id}/release`,
        allowed: true,
      },
    ],
  };
}
