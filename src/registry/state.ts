/** asset:sync:state, read. Times are Unix seconds. */
export interface SyncState {
  readonly last_sync_time: number | undefined;
  readonly last_commit_sha: string | undefined;
  readonly synced_count: number;
  readonly sync_status: 'idle' | 'syncing' | 'failed';
  readonly generation: number;
  readonly error_count: number;
  readonly degraded: boolean;
  readonly last_error: string | undefined;
  readonly digest: string | undefined;
  readonly config_fingerprint: string | undefined;
  readonly fence: number;
}
