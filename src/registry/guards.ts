/** Changes that wait for a person. */
export interface Guards {
  /** Deletions are held when more than this share of the assets would go (or all of them); 1 holds only "all", false none. */
  readonly massDelete: number | false;
  /** Hold an asset that asks for more permissions, another language or more dependencies than its last version. */
  readonly widening: boolean;
  /** Hold a commit that does not descend from the one published. */
  readonly historyRewrite: boolean;
}

export const DEFAULT_GUARDS: Guards = { massDelete: 0.3, widening: true, historyRewrite: true };
