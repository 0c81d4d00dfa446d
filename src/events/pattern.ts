/** A pattern of event names: `task:completed`, `approval:*`, `*`. */
export const EVENT_PATTERN = /^(\*|[a-z_]+(:\*|:[a-z_]+)?)$/;

/** Whether one of the patterns fits. */
export const fits = (patterns: readonly string[], event: string): boolean =>
  patterns.some((pattern) => (pattern.endsWith('*') ? event.startsWith(pattern.slice(0, -1)) : event === pattern));
