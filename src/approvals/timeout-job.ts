import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import type { Logger } from '../log.ts';
import type { Escalation } from './escalation.ts';
import type { Timekeeper } from './timekeeper.ts';

export interface TimeoutJobOptions {
  readonly store: TaskStore;
  readonly timekeeper: Timekeeper;
  readonly escalation: Escalation;
  readonly log: Logger;
}

/** A daemon killed in the middle of a turn keeps its successor waiting for no longer than this. */
const LIMIT_MS = 30_000;

/** The job approval_timeout: all that the clock has to do; or, with a target, the request of that id. Each project has its own. */
export function approvalTimeout({ store, timekeeper, escalation, log }: TimeoutJobOptions) {
  return {
    own: {
      id: store.isDefaultProject ? 'approval_timeout' : `approval_timeout.${store.project}`,
      isOwn: ({ target }: About) => target?.startsWith(store.head) ?? false,
    },
    limitMs: LIMIT_MS,
    everySeconds: () => timekeeper.restSeconds,
    run: async ({ target }: About) => {
      if (target !== undefined) return void (await escalation.escalate(target));
      const done = await timekeeper.tickOnce();
      if (Object.values(done).some((count) => count > 0)) log.info('open questions looked at', { ...done });
    },
  };
}

/** As much of a job as is looked at here. */
interface About {
  readonly target?: string | undefined;
}
