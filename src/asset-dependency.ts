import { ReeveError } from './errors.ts';
import { SOURCE_STATES } from './sync/source-state.ts';
import type { SourceStatus, Sync } from './sync/sync.ts';
import type { Dependency, Facts } from './system/dependency.ts';

const WELL = new Set(['new', 'idle', 'held']);

/**
 * The asset sources as things the daemon depends on, though it works without them. They are asked when they are synced,
 * not on every probe: that would cost quota.
 */
export const sourceDependencies = (sync: Sync, isDefault: boolean): Dependency[] =>
  sync.names().map((name) => ({
    name: sync.names().length === 1 ? 'assets' : `assets:${name}`,
    required: false,
    embedded: isDefault && sync.runner(name).named.source.kind === 'directory',
    address: () => sync.runner(name).named.source.address,
    check: async () => {
      const status = await sync.statusOf(name);
      const { problem } = status;
      if (!WELL.has(status.state) && problem) throw new ReeveError(problem.code, problem.details ?? {});
      return factsOf(status);
    },
  }));

const factsOf = ({ state, commit, assets, errors, running, quota, next_at }: SourceStatus): Facts => ({
  state: running ? `syncing (${running.phase} ${running.done}/${running.total})` : SOURCE_STATES[state].says,
  ...(commit && { commit: commit.slice(0, 7) }),
  assets,
  ...(errors > 0 && { bad: errors }),
  ...(quota && { quota: `${quota.remaining}/${quota.limit}` }),
  ...(next_at && { next: next_at }),
});
