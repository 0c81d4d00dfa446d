/** What one can be. A user may have several roles and may then do what any of them may. */
export const ROLES = {
  author: 'writes tasks and submits them',
  reviewer: 'approves and rejects',
  admin: 'runs the place',
  agent: 'does the work, under its own name only',
  system: 'a service that acts by itself: schedulers, integrations',
} as const;
export type Role = keyof typeof ROLES;
export const ROLE_NAMES = Object.keys(ROLES) as [Role, ...Role[]];

/** What an operation does, as far as permission goes. Every operation is one of these. */
export const ACCESS = {
  open: 'anyone who reaches the daemon, without a token',
  read: 'looks at state',
  audit: 'reads the audit log',
  create: 'creates tasks, edits its own',
  submit: 'submits tasks for approval',
  cancel: 'cancels tasks',
  work: 'pulls and reports tasks, takes locks',
  decide: 'approves and rejects',
  operate: 'pauses, retries, edits, syncs',
  force: 'applies a task in spite of its gate',
  override: 'overrides a policy',
  admin: 'changes configuration, policies, users and tokens',
} as const;
export type Access = keyof typeof ACCESS;
export const ACCESS_NAMES = Object.keys(ACCESS) as [Access, ...Access[]];

/** `own`: only as oneself, that is for the agent of the same id. */
export type Grant = 'yes' | 'own' | 'no';

/**
 * Who may do what. This table decides, and nothing else does; who may answer which request (nobody their own) is for the gate
 * to say. Force and override want a second person besides.
 */
export const PERMISSIONS: Readonly<Record<Access, Readonly<Record<Role, Grant>>>> = {
  open: { author: 'yes', reviewer: 'yes', admin: 'yes', agent: 'yes', system: 'yes' },
  read: { author: 'yes', reviewer: 'yes', admin: 'yes', agent: 'yes', system: 'yes' },
  audit: { author: 'yes', reviewer: 'yes', admin: 'yes', agent: 'no', system: 'yes' },
  create: { author: 'yes', reviewer: 'no', admin: 'yes', agent: 'yes', system: 'no' },
  submit: { author: 'yes', reviewer: 'no', admin: 'yes', agent: 'yes', system: 'no' },
  cancel: { author: 'yes', reviewer: 'no', admin: 'yes', agent: 'no', system: 'yes' },
  work: { author: 'no', reviewer: 'no', admin: 'yes', agent: 'own', system: 'no' },
  decide: { author: 'no', reviewer: 'yes', admin: 'yes', agent: 'no', system: 'no' },
  operate: { author: 'no', reviewer: 'no', admin: 'yes', agent: 'no', system: 'no' },
  force: { author: 'no', reviewer: 'no', admin: 'yes', agent: 'no', system: 'no' },
  override: { author: 'no', reviewer: 'no', admin: 'yes', agent: 'no', system: 'no' },
  admin: { author: 'no', reviewer: 'no', admin: 'yes', agent: 'no', system: 'no' },
};

export interface Rights {
  readonly access: ReadonlySet<Access>;
  /** Only as oneself. */
  readonly own: ReadonlySet<Access>;
}

/** What roles allow, narrowed to the scopes of a token; no scopes narrow nothing. */
export function rightsOf(roles: readonly Role[], scopes: readonly Access[] = []): Rights {
  const inScope = (access: Access) => scopes.length === 0 || access === 'open' || scopes.includes(access);
  const granted = (access: Access, grant: Grant) => roles.some((role) => PERMISSIONS[access][role] === grant);
  const access = new Set(ACCESS_NAMES.filter((one) => inScope(one) && granted(one, 'yes')));
  const own = new Set(ACCESS_NAMES.filter((one) => inScope(one) && !access.has(one) && granted(one, 'own')));
  return { access, own };
}

/** What is in the first and not in the second: what someone would give away without having it. */
export function beyond(given: Rights, has: Rights): Access[] {
  return ACCESS_NAMES.filter(
    (one) =>
      (given.access.has(one) && !has.access.has(one)) ||
      (given.own.has(one) && !has.own.has(one) && !has.access.has(one)),
  );
}
