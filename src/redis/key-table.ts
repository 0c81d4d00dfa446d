import { ADE_APPROVAL_KEYS } from './key-table/ade-approvals.ts';
import { ADE_LOCK_KEYS } from './key-table/ade-locks.ts';
import { ADE_SYSTEM_KEYS } from './key-table/ade-system.ts';
import { ADE_TASK_KEYS } from './key-table/ade-tasks.ts';
import { ASSET_KEYS } from './key-table/assets.ts';
import { COORDINATION_KEYS } from './key-table/coordination.ts';
import type { KeyRow } from './key-table/row.ts';

export type { KeyRow, Lifetime, RedisType } from './key-table/row.ts';

/** Every Redis key of the daemon, once. Builders, id rules, docs/keys.md and the search for stray keys derive from it. */
export const KEY_TABLE = {
  ...ASSET_KEYS,
  ...COORDINATION_KEYS,
  ...ADE_LOCK_KEYS,
  ...ADE_APPROVAL_KEYS,
  ...ADE_TASK_KEYS,
  ...ADE_SYSTEM_KEYS,
} as const satisfies Record<string, KeyRow>;

export type KeyName = keyof typeof KEY_TABLE;
export const KEY_NAMES = Object.keys(KEY_TABLE) as readonly KeyName[];

export type KeyMode = 'standalone' | 'cluster';

/** How a row is spelt in a mode, variables still open. */
export function spelling(row: KeyRow, mode: KeyMode): string {
  if (mode === 'standalone') return row.pattern;
  if (row.slot === 'project' || row.slot === 'asset') return row.pattern.replace(/^[^:]+/, '{$&}');
  return row.cluster ?? row.pattern;
}
