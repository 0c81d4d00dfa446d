import { hash } from 'node:crypto';

export const HOLD_KINDS = ['mass-delete', 'permission-widening', 'history-rewrite'] as const;
export type HoldKind = (typeof HOLD_KINDS)[number];

/** A change that waits for a person. Its id follows from its content: another change is another hold. Times are Unix seconds. */
export interface Hold {
  readonly id: string;
  readonly kind: HoldKind;
  readonly commit: string;
  readonly since: number;
  /** What is held, in one sentence. */
  readonly says: string;
  readonly paths: readonly string[];
  readonly assets: readonly string[];
  readonly released?: { readonly by: string; readonly at: number; readonly reason: string };
}

/** The same change has the same id in every sync, so that a release finds it and a changed one needs a new release. */
export const holdId = (kind: HoldKind, ...content: readonly string[]): string =>
  `${kind}-${hash('sha256', JSON.stringify(content)).slice(0, 12)}`;

/** Whoever else writes to the hash: what cannot be read is as if it were not there. */
export const parseHolds = (raw: Readonly<Record<string, string>>): ReadonlyMap<string, Hold> =>
  new Map(
    Object.entries(raw).flatMap(([id, json]): [string, Hold][] => {
      try {
        return [[id, JSON.parse(json) as Hold]];
      } catch {
        return [];
      }
    }),
  );
