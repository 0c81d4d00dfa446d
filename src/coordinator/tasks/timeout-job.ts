import type { Logger } from '../../log.ts';
import type { Reconciler } from './reconcile.ts';
import type { Tasks } from './tasks.ts';

export interface TimeoutJobOptions {
  readonly tasks: Tasks;
  readonly reconciler: Pick<Reconciler, 'hearOnce'>;
  readonly log: Logger;
}

/** Who claims a task is heard of, and then it is sooner. */
const REST_SECONDS = 10;
export const LOOK_SECONDS = 1;
const LIMIT_MS = 30_000;

/** The job task_timeout: all work that takes longer than it may; or, with a target, the task of that id. Each project has its own. */
export function timeoutJob({ tasks, reconciler, log }: TimeoutJobOptions) {
  const { store, overdue } = tasks;
  return {
    own: {
      id: store.isDefaultProject ? 'task_timeout' : `task_timeout.${store.project}`,
      isOwn: ({ target }: About) => target?.startsWith(store.head) ?? false,
    },
    limitMs: LIMIT_MS,
    everySeconds: async () => {
      const next = (await overdue.nextSeconds()) ?? REST_SECONDS;
      return Math.min(REST_SECONDS, Math.max(LOOK_SECONDS, next));
    },
    run: async ({ target }: About) => {
      await reconciler.hearOnce();
      const timedOut = await overdue.timeOutOnce(target?.slice(store.head.length));
      if (timedOut.length > 0) log.warn('took longer than they may', { tasks: timedOut });
    },
  };
}

/** As much of a job as is looked at here. */
interface About {
  readonly target?: string | undefined;
}
