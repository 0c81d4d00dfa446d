import { z } from 'zod';
import { ReeveError } from '../errors.ts';
import { type Caller, rightsOfCaller } from '../identity/caller.ts';
import { aliasSchema, emailSchema } from '../identity/names.ts';
import { beyond, type Rights, ROLE_NAMES, type Role, rightsOf } from '../identity/permissions.ts';
import { userIdSchema } from '../identity/user.ts';
import { defineOperation, type Operation } from './operation.ts';

const userShape = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string().optional(),
    manager: z.string().optional(),
    roles: z.array(z.enum(ROLE_NAMES)),
    state: z.enum(['active', 'removed']),
    aliases: z.array(z.string()),
    created_at: z.string(),
    removed_at: z.string().optional(),
  })
  .meta({ id: 'User' });

const id = userIdSchema.describe('Which user');
const anyName = z.string().min(1).max(254).describe('Id, address or alias');
const nothing = z.literal('');
const facts = {
  name: z.string().min(1).max(200).optional().describe('To show'),
  roles: z.array(z.enum(ROLE_NAMES)).optional().describe('What it is; default author'),
  aliases: z.array(aliasSchema).max(50).optional().describe('Other names of the same person'),
};

const DEFAULT_ROLES: readonly Role[] = ['author'];

/** The people and agents that may call. */
export const userOperations: readonly Operation[] = [
  defineOperation({
    name: 'user.list',
    summary: 'List users',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(userShape) }),
    errors: [],
    http: { method: 'GET', path: '/users' },
    cli: {
      words: 'user list',
      columns: ['id', 'name', 'roles', 'manager', 'state', 'email'],
      examples: ['reeve user list'],
    },
    run: async ({ rooms }) => ({ items: await rooms.users.list() }),
  }),
  defineOperation({
    name: 'user.show',
    summary: 'Show one user',
    access: 'read',
    input: z.object({ user: anyName }),
    output: userShape,
    errors: ['USER_UNKNOWN'],
    http: { method: 'GET', path: '/users/{user}' },
    cli: { words: 'user show', args: ['user'], examples: ['reeve user show ann', 'reeve user show ann@example.com'] },
    run: ({ rooms }, { user }) => rooms.users.get(user),
  }),
  defineOperation({
    name: 'user.add',
    summary: 'Add a user',
    description: 'An agent is a user with the role agent: its token then works for the agent of that id and no other.',
    access: 'admin',
    input: z.object({
      user: id,
      ...facts,
      email: emailSchema.optional().describe('Another name of the same person'),
      manager: userIdSchema.optional().describe('Who answers when this user cannot'),
    }),
    output: userShape,
    errors: ['NAME_TAKEN', 'USER_UNKNOWN'],
    http: { method: 'POST', path: '/users', answers: { 201: 'Added' }, status: () => 201 },
    cli: {
      words: 'user add',
      args: ['user'],
      examples: [
        'reeve user add ann --roles author,reviewer --email ann@example.com',
        'reeve user add bot --roles agent',
      ],
    },
    run: ({ rooms, caller }, { user, roles = DEFAULT_ROLES, ...rest }) => {
      refuseWider(caller, rightsOf(roles), `the roles ${roles.join(', ')}`);
      return rooms.users.add({ id: user, roles, ...rest });
    },
  }),
  defineOperation({
    name: 'user.set',
    summary: 'Change a user; new roles end its sessions',
    access: 'admin',
    input: z.object({
      user: anyName,
      ...facts,
      email: emailSchema.or(nothing).optional().describe('Empty: none'),
      manager: userIdSchema.or(nothing).optional().describe('Empty: none'),
    }),
    output: userShape,
    errors: ['NAME_TAKEN', 'USER_UNKNOWN', 'USER_REMOVED', 'LAST_ADMIN'],
    http: { method: 'PATCH', path: '/users/{user}' },
    cli: { words: 'user set', args: ['user'], examples: ['reeve user set ann --roles reviewer --manager ben'] },
    run: ({ rooms, caller }, { user, ...change }) => {
      if (change.roles) refuseWider(caller, rightsOf(change.roles), `the roles ${change.roles.join(', ')}`);
      return rooms.users.set(user, change);
    },
  }),
  defineOperation({
    name: 'user.remove',
    summary: 'Remove a user: its tokens and sessions are dead at once',
    access: 'admin',
    input: z.object({ user: anyName, reason: z.string().max(1_000).optional().describe('Why') }),
    output: userShape,
    errors: ['USER_UNKNOWN', 'LAST_ADMIN'],
    http: { method: 'DELETE', path: '/users/{user}' },
    cli: { words: 'user remove', args: ['user'], examples: ['reeve user remove ann --reason "left the team"'] },
    run: ({ rooms }, { user }) => rooms.users.remove(user),
  }),
];

/** Nobody gives what it has not: a token narrowed to a few things must not be the way to all of them. */
export function refuseWider(caller: Caller, given: Rights, what: string): void {
  const more = beyond(given, rightsOfCaller(caller));
  if (more.length === 0) return;
  throw new ReeveError('DENIED', { caller: caller.id, why: `${what} would allow what it may not: ${more.join(', ')}` });
}
