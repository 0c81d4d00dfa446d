import picomatch from 'picomatch';

/** A resource as patterns see it: what it is called with its type, `database:prod-db-01`. */
export interface NamedResource {
  readonly type: string;
  readonly id: string;
}

/** `database:prod-*` is about one type, `prod-*` about things of any type. A star does not pass a slash; two do. */
export function matchesResource(pattern: string, { type, id }: NamedResource): boolean {
  const colon = pattern.indexOf(':');
  if (colon < 0) return matches(pattern, id);
  return matches(pattern.slice(0, colon), type) && matches(pattern.slice(colon + 1), id);
}

export const matchesAnyResource = (patterns: readonly string[], resource: NamedResource): boolean =>
  patterns.some((pattern) => matchesResource(pattern, resource));

export function matches(pattern: string, text: string): boolean {
  let isMatch = COMPILED.get(pattern);
  if (!isMatch) {
    if (COMPILED.size >= MOST_COMPILED) COMPILED.clear();
    isMatch = picomatch(pattern, { dot: true, nonegate: true });
    COMPILED.set(pattern, isMatch);
  }
  return isMatch(text);
}

/** The same few patterns are asked about every task. */
const COMPILED = new Map<string, (text: string) => boolean>();
const MOST_COMPILED = 2_000;
