import { join } from 'node:path';
import type { Clock } from './clock.ts';
import type { TaskStore } from './coordinator/tasks/task-store.ts';
import { ReeveError, reason } from './errors.ts';
import { Executions } from './executions/executions.ts';
import type { FileStore } from './files/file-store.ts';
import { folderFiles } from './files/folder-files.ts';
import { s3Files } from './files/s3-files.ts';
import type { Logger } from './log.ts';
import { every, type Service } from './service.ts';
import type { Config } from './settings.ts';

export interface ExecutionRoomsOptions {
  /** Asked on each use: a reload replaces it. */
  readonly config: () => Config;
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fetch: typeof fetch;
}

const SWEEP_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** What attempts leave behind, and where the long of it lies. */
export function createExecutionRooms({ config, store, clock, log, fetch }: ExecutionRoomsOptions): {
  readonly executions: Executions;
  readonly files: FileStore;
  readonly sweeping: Service;
} {
  const files = filesOf(config(), clock, fetch);
  const limits = () => {
    const { inlineBytes, maxBytes, keepDays } = config().files;
    return { inlineBytes, maxBytes, keepMs: keepDays * DAY_MS };
  };
  const executions = new Executions({ store, files, limits, clock });
  const sweeping = every('files', {
    clock,
    pauseMs: () => SWEEP_MS,
    tick: () => executions.sweepOnce(),
    onError: (error) => log.warn('old files were not thrown away', { problem: reason(error) }),
  });
  return { executions, files, sweeping };
}

/** An S3-compatible service, if one is named; else a folder of this machine. */
export function filesOf({ files, dataDir, instance }: Config, clock: Clock, send: typeof fetch): FileStore {
  const { endpoint, bucket, accessKeyId, secretAccessKey, region, prefix } = files.s3;
  if (!endpoint && !bucket) return folderFiles({ dir: files.dir ?? join(dataDir, 'files'), host: instance });
  if (!endpoint || !bucket || !accessKeyId || !secretAccessKey) {
    const problem = 'files.s3 needs endpoint, bucket, accessKeyId and secretAccessKey';
    throw new ReeveError('USAGE', { problem, hint: 'Set all four, or none to keep files in a folder.' });
  }
  return s3Files({ endpoint, bucket, accessKeyId, secretAccessKey, region, prefix, clock, fetch: send });
}

/** A text of so many bytes, written as base64 in JSON, with the rest of a request around it. */
export const fileBodyBytes = ({ files }: Config): number => Math.ceil(files.maxBytes * 1.34) + 65_536;
