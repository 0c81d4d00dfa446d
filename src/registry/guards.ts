import type { Asset } from './asset.ts';

/** Changes that wait for a person. */
export interface Guards {
  /** Deletions are held when more than this share of the assets would go, or all of them; false holds none. */
  readonly massDelete: number | false;
  /** Hold an asset that asks for more than its last version did. */
  readonly widening: boolean;
  /** Hold a commit that does not descend from the one published. */
  readonly historyRewrite: boolean;
}

export const DEFAULT_GUARDS: Guards = { massDelete: 0.3, widening: true, historyRewrite: true };

/** Whether so many deletions need a person. */
export const isMassDelete = (gone: number, total: number, { massDelete }: Guards): boolean =>
  massDelete !== false && gone > 0 && (gone === total || gone > total * massDelete);

/** What a new version may do that the one before might not; empty if nothing. */
export function widened(before: Rights, after: Rights): readonly string[] {
  const more = widerPermissions(before.permissions, after.permissions);
  const [was, is] = [before.runtime?.language ?? 'none', after.runtime?.language ?? 'none'];
  return was === 'none' && is !== 'none' ? [...more, `runs ${is}`] : more;
}

type Rights = Pick<Asset, 'permissions' | 'runtime'>;
type Permissions = Asset['permissions'];

function widerPermissions(before: Permissions, after: Permissions): string[] {
  const [had, has] = [asSettings(before), asSettings(after)];
  return Object.entries(has)
    .filter(([name, value]) => isWider(had[name], value))
    .map(([name, value]) => (value === true ? name : `${name}: ${JSON.stringify(value)}`));
}

/** A list of names is the same as these names set to true. */
const asSettings = (permissions: Permissions): Readonly<Record<string, unknown>> =>
  Array.isArray(permissions) ? Object.fromEntries(permissions.map((name) => [name, true])) : permissions;

/** When in doubt it is wider: a person looks at it, nothing is lost. */
function isWider(before: unknown, after: unknown): boolean {
  if (after === false || after === null || JSON.stringify(before) === JSON.stringify(after)) return false;
  if (typeof before === 'number' && typeof after === 'number') return after > before;
  if (Array.isArray(before) && Array.isArray(after)) {
    const had = new Set(before.map((one) => JSON.stringify(one)));
    return after.some((one) => !had.has(JSON.stringify(one)));
  }
  return !(before === true && typeof after === 'object');
}
