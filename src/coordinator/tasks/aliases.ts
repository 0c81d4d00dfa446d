/**
 * People call TASK-033 also TASK-33, #33 or 33. Answers with the id that is meant: an exact one always, another
 * spelling only if it can mean just one task.
 */
export function idResolver(ids: Iterable<string>): (written: string) => string | undefined {
  const exact = new Set(ids);
  let spellings: Map<string, Set<string>> | undefined;
  return (written) => {
    if (exact.has(written)) return written;
    spellings ??= spellingsOf(exact);
    const meant = spellings.get(spelling(written));
    return meant?.size === 1 ? [...meant][0] : undefined;
  };
}

function spellingsOf(ids: ReadonlySet<string>): Map<string, Set<string>> {
  const spellings = new Map<string, Set<string>>();
  for (const id of ids) {
    const loose = spelling(id);
    spellings.set(loose, (spellings.get(loose) ?? new Set()).add(id));
  }
  return spellings;
}

const NUMBERED = /^(?:#|(.*?)[-_ ]?)0*(\d+)$/;

/** What all spellings of an id have in common: without case and leading zeros; the number alone, if it is a task's plain number. */
export function spelling(written: string): string {
  const text = written.trim().toLowerCase();
  const [, prefix, number] = NUMBERED.exec(text) ?? [];
  if (number === undefined) return text;
  const isPlain = prefix === undefined || prefix === '' || prefix === 'task';
  return isPlain ? `#${number}` : `${prefix}-${number}`;
}
