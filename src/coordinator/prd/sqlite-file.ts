import { stat } from 'node:fs/promises';
import type { Database } from 'better-sqlite3';
import { backOff, type Clock } from '../../clock.ts';
import { ReeveError, reason } from '../../errors.ts';
import { sqliteProblem } from '../../store/sqlite-problem.ts';

/** SQLite waits for a lock by blocking the whole process, so it may do so only briefly; then we wait beside the loop. */
const BLOCKING_WAIT_MS = 20;
const PATIENCE_MS = 1_500;

export type Access = 'read' | 'write';

/** A file of other people's, open for as long as it is the one of its name. Its journal mode is theirs to choose. */
export interface SqliteFile {
  readonly path: string;
  /** Runs work in one transaction. What goes wrong with the file has a PRD_… code, and nothing of the work stays. */
  transaction<T>(access: Access, work: (file: Database) => T): Promise<T>;
  isCurrent(): Promise<boolean>;
  close(): void;
}

export async function openSqliteFile(path: string, clock: Clock): Promise<SqliteFile> {
  const attempt = patient(path, clock);
  const identity = await attempt('read', () => identify(path));
  const { default: Sqlite } = await import('better-sqlite3');
  const file = await attempt('read', async () => new Sqlite(path, { timeout: BLOCKING_WAIT_MS, fileMustExist: true }));
  return {
    path,
    transaction: (access, work) =>
      attempt(access, async () => {
        const run = file.transaction(work);
        // A transaction that reads first and writes later could not wait for the write lock any more.
        return access === 'write' ? run.immediate(file) : run.deferred(file);
      }),
    isCurrent: async () => (await identify(path).catch(() => undefined)) === identity,
    close: () => file.close(),
  };
}

/** A deleted or replaced file stays open under its old identity: rows would go where nobody finds them. */
async function identify(path: string): Promise<string> {
  const { ino, dev } = await stat(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** A transaction that found the file locked has done nothing, so it may run again. */
function patient(path: string, clock: Clock) {
  return async <T>(access: Access, run: () => Promise<T>): Promise<T> => {
    const until = clock.now() + PATIENCE_MS;
    for (let again = 0; ; again++) {
      try {
        return await run();
      } catch (error) {
        if (!isBusy(error) || clock.now() >= until) throw explained(path, access, error);
      }
      await clock.sleep(backOff(again, 5, 100));
    }
  };
}

const isBusy = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_BUSY');
/** Failures of the writing alone: the file can still be read. */
const UNWRITABLE = /^SQLITE_(READONLY|CANTOPEN|FULL|PERM|IOERR_WRITE|IOERR_DELETE)/;

function explained(path: string, access: Access, error: unknown): ReeveError {
  if (error instanceof ReeveError) return error;
  const code = codeOf(error);
  const problem = sqliteProblem(error) ?? reason(error);
  if (isBusy(error)) return new ReeveError('PRD_LOCKED', { path }, { cause: error });
  if (access === 'write' && UNWRITABLE.test(code)) {
    return new ReeveError('PRD_UNWRITABLE', { path, problem }, { cause: error });
  }
  return new ReeveError('PRD_UNREADABLE', { path, problem }, { cause: error });
}

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
