import type { Bench } from './harness.ts';

/** Every bench, by name. A new one is one line; its module is loaded only when it runs. */
export const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  assets: async () => (await import('./assets.ts')).assets,
  locks: async () => (await import('./locks.ts')).locks,
  queue: async () => (await import('./queue.ts')).queue,
  approvals: async () => (await import('./approvals.ts')).approvals,
  doors: async () => (await import('./doors.ts')).doors,
};
