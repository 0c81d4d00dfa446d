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
  readonly paths_digest: string | undefined;
  readonly config_fingerprint: string | undefined;
  readonly fence: number;
}

/** Whoever else writes to the hash, a reader gets something it can work with. */
export function stateOf(fields: Readonly<Record<string, string>>): SyncState {
  const number = (name: string) => {
    const value = Number(fields[name]);
    return Number.isSafeInteger(value) && value >= 0 ? value : 0;
  };
  const { sync_status: status } = fields;
  return {
    last_sync_time: fields.last_sync_time === undefined ? undefined : number('last_sync_time'),
    last_commit_sha: fields.last_commit_sha || undefined,
    synced_count: number('synced_count'),
    sync_status: status === 'syncing' || status === 'failed' ? status : 'idle',
    generation: number('generation'),
    error_count: number('error_count'),
    degraded: fields.degraded === 'true',
    last_error: fields.last_error || undefined,
    digest: fields.digest || undefined,
    paths_digest: fields.paths_digest || undefined,
    config_fingerprint: fields.config_fingerprint || undefined,
    fence: number('fence'),
  };
}
