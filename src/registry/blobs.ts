/** The blob cache: asset:blob:SHA. Content-addressed, so a hit is always right and a rename, a revert or a repair costs nothing. */
export interface Blobs {
  /** Which of these are here; renews their lease. */
  has(shas: readonly string[]): Promise<ReadonlySet<string>>;
  get(shas: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Blobs above the size limit are not kept. The caller has verified that the bytes have this SHA. */
  put(blobs: ReadonlyMap<string, Uint8Array>): Promise<void>;
}
