/** A path that cannot be written to a log, a terminal or a folder as it is. Undefined if it is harmless. */
export function hostility(path: string): string | undefined {
  if (path === '' || path.length > 1024) return 'it is empty or longer than 1024 characters';
  if (/\p{Cc}/u.test(path)) return 'it has control characters';
  if (/\uFFFD/.test(path)) return 'it is not UTF-8';
  if (/[\u200B-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]|[\u{E0000}-\u{E007F}]/u.test(path))
    return 'it has invisible characters';
  if (path.startsWith('/') || path.includes('\\')) return 'it is absolute or has a backslash';
  if (path.split('/').some((part) => part === '' || part === '.' || part === '..' || part.toLowerCase() === '.git'))
    return 'it leaves its folder';
  return undefined;
}
