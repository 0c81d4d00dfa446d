/** A path in the form in which two spellings of one file are equal: no `.`, `..`, `\`, doubled or trailing slashes. */
export type PlainPath = string & { readonly plainPath?: true };

/** The top of the working copy; it covers everything beneath it. */
export const ROOT: PlainPath = '';

/**
 * Paths are taken relative to the working copy. One that leaves it keeps its `..`, and an absolute one its first slash:
 * both are places of their own that no path inside covers.
 *
 * A pattern stands for the folder in which it begins, since what it will match is only known when it is too late:
 * `src/pages/*.tsx` is `src/pages`. Brackets are plain characters: frameworks name files `[id].tsx`.
 */
export function plainPath(written: string): PlainPath {
  const slashed = written.trim().normalize('NFC').replaceAll('\\', '/');
  const isAbsolute = slashed.startsWith('/');
  const parts: string[] = [];
  for (const part of slashed.split('/')) {
    if (PATTERN.test(part)) break;
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (!isAbsolute) parts.push('..');
  }
  return `${isAbsolute ? '/' : ''}${parts.join('/')}`;
}

const PATTERN = /[*?{]/;

/** Whether one path is the other or lies beneath it. A file covers only itself: nothing lies beneath a file. */
export const covers = (outer: PlainPath, inner: PlainPath): boolean => marked(inner).startsWith(marked(outer));

/** Every path that covers this one, outermost first, itself left out. */
export function above(path: PlainPath): PlainPath[] {
  const mark = marked(path);
  const found: PlainPath[] = [];
  for (let at = mark.indexOf('/'); at < mark.length - 1; at = mark.indexOf('/', at + 1)) {
    found.push(unmarked(mark.slice(0, at + 1)));
  }
  return found;
}

/**
 * The path with its end marked, so that "covers" is "begins with" and a sorted set of marks can be asked for all that
 * lies beneath a path. Inside the working copy all marks begin with `./`, which is the mark of its top.
 */
export function marked(path: PlainPath): string {
  if (path === ROOT) return './';
  if (path === '/') return '/';
  return path.startsWith('/') || path === '..' || path.startsWith('../') ? `${path}/` : `./${path}/`;
}

const unmarked = (mark: string): PlainPath => (mark === '/' ? mark : mark.slice(mark.startsWith('./') ? 2 : 0, -1));
