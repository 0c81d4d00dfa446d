import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import type { Logger } from '../log.ts';
import type { Archivist } from './archivist.ts';
import { type PruningOptions, pruneOnce } from './pruning.ts';
import type { Renewal } from './renewal.ts';

export interface ArchiveJobOptions {
  readonly tasks: TaskStore;
  readonly archivist: Archivist;
  readonly renewal: Renewal;
  readonly pruning: PruningOptions;
  readonly log: Logger;
}

const REST_SECONDS = 3_600;
const LIMIT_MS = 120_000;

/** The job archive: what ended goes to the store before Redis forgets it, and what has not is kept there. Each project has its own. */
export function archiveJob({ tasks, archivist, renewal, pruning, log }: ArchiveJobOptions) {
  return {
    own: {
      id: tasks.isDefaultProject ? 'archive' : `archive.${tasks.project}`,
      // One that names nobody's task is for the project that has no name either.
      isOwn: ({ target = '' }: { readonly target?: string | undefined }) => target.startsWith(tasks.head),
    },
    limitMs: LIMIT_MS,
    everySeconds: () => (archivist.isMidway ? 1 : REST_SECONDS),
    run: async (_: unknown, signal: AbortSignal) => {
      const renewed = await renewal.renewOnce(signal);
      if (renewed > 0) log.info('open tasks kept for longer', { renewed });
      const pruned = await pruneOnce(pruning, signal);
      if (pruned > 0) log.info('tasks deleted from the archive', { pruned });
      const counts = await archivist.archiveOnce(signal);
      if (counts.archived + counts.unlisted > 0) log.info('tasks archived', { ...counts });
      if (counts.lost > 0) log.warn('tasks were forgotten before they could be archived', { ...counts });
    },
  };
}
