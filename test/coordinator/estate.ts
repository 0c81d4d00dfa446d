import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createPrdBridge, type PrdBridge } from '../../src/coordinator/prd/bridge.ts';
import { Reconciler } from '../../src/coordinator/tasks/reconcile.ts';
import { silentLog } from '../../src/log.ts';
import type { TestPrdFile } from '../support/prd-db.ts';
import type { TaskRoom } from './tasks/room.ts';

/** The whole coordinator over one task file and one Redis; nothing runs by itself. */
export interface Estate {
  readonly prd: TestPrdFile;
  readonly bridge: PrdBridge;
  readonly reconciler: Reconciler;
  /** What the daemon does in a second: outcomes go to the file, edits come from it, plain clients are read, time passes. */
  turn(): Promise<void>;
}

export async function anEstate(room: TaskRoom, prd: TestPrdFile): Promise<Estate> {
  const { tasks, locks, events } = room;
  const bridge = createPrdBridge({ path: prd.path, sink: tasks, clock: systemClock, log: silentLog });
  onTestFinished(() => bridge.stop());
  const reconciler = new Reconciler({
    tasks,
    locks,
    events,
    keyspace: { mode: 'standalone' },
    clock: systemClock,
    log: silentLog,
    limits: () => room.limits,
  });
  await bridge.pullOnce();
  return {
    prd,
    bridge,
    reconciler,
    turn: async () => {
      await bridge.pushOnce();
      await bridge.pullOnce();
      await reconciler.once();
      await bridge.pushOnce();
    },
  };
}
