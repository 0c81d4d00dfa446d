/** What a failure of SQLite or of the file under it means, in words; undefined if the database is not to blame. */
export function sqliteProblem(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('code' in thrown)) return undefined;
  const code = String(thrown.code);
  const words = WORDS.find(([start]) => code === start || code.startsWith(`${start}_`))?.[1];
  return words && `${words} (${code})`;
}

/** SQLite's extended codes begin with the plain one: SQLITE_IOERR_WRITE. The first that fits is taken. */
const WORDS: readonly (readonly [code: string, words: string])[] = [
  ['ENOENT', 'there is no such file or directory'],
  ['ENOTDIR', 'a part of its path is not a directory'],
  ['EISDIR', 'it is a directory'],
  ['EACCES', 'this user may not write it'],
  ['EPERM', 'this user may not write it'],
  ['EROFS', 'its file system is read-only'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
  ['SQLITE_BUSY', 'another program keeps it locked'],
  ['SQLITE_LOCKED', 'another program keeps it locked'],
  ['SQLITE_READONLY_DBMOVED', 'the file was moved while it was open'],
  ['SQLITE_READONLY', 'it cannot be written'],
  ['SQLITE_PERM', 'this user may not write it'],
  ['SQLITE_CANTOPEN', 'the file, or one beside it, cannot be opened'],
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_NOTADB', 'the file is not an SQLite database'],
  ['SQLITE_CORRUPT', 'the file is damaged or cut short; restore it from a backup'],
  ['SQLITE_IOERR', 'the disk fails'],
  ['SQLITE_PROTOCOL', 'its locks do not work here; is it on a network file system?'],
];
