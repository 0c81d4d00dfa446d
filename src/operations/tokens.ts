import { z } from 'zod';
import { LOCAL_USER } from '../identity/caller.ts';
import { ACCESS_NAMES, rightsOf } from '../identity/permissions.ts';
import { defineOperation, type Operation } from './operation.ts';
import { refuseWider } from './users.ts';

const tokenShape = z
  .object({
    token_id: z.string(),
    user: z.string(),
    label: z.string(),
    scopes: z.array(z.enum(ACCESS_NAMES)).describe('What it is narrowed to; empty: all that its user may do'),
    created_at: z.string(),
    created_by: z.string(),
    expires_at: z.string().optional(),
    revoked_at: z.string().optional(),
    last_used_at: z.string().optional().describe('To the minute'),
    state: z.enum(['live', 'expired', 'revoked']),
  })
  .meta({ id: 'Token' });

const DAY_MS = 86_400_000;

/** API tokens. */
export const tokenOperations: readonly Operation[] = [
  defineOperation({
    name: 'token.create',
    summary: 'Make a token; it is shown this once',
    description:
      'Until the first one exists, callers on this machine act as the admin local. From then on every call needs a token, so the first must be that of an admin.',
    access: 'admin',
    input: z.object({
      user: z.string().min(1).max(254).default(LOCAL_USER).describe('Whose: id, address or alias'),
      label: z.string().max(200).default('').describe('What for'),
      scopes: z.array(z.enum(ACCESS_NAMES)).default([]).describe('Narrow it to these; default: all the user may do'),
      days: z.number().positive().max(3_650).optional().describe('How long it lives; default: until revoked'),
    }),
    output: tokenShape.extend({
      token: z.string().describe('The token itself. Only its hash is kept'),
      first: z.boolean().describe('From now on every call needs a token'),
    }),
    errors: ['USER_UNKNOWN', 'USER_REMOVED', 'LAST_ADMIN'],
    http: { method: 'POST', path: '/tokens', answers: { 201: 'Made' }, status: () => 201 },
    cli: {
      words: 'token create',
      local: 'token-create',
      takesSettings: false,
      switches: {
        save: 'keep it in the data directory, for the commands of this user on this machine',
        offline: 'write it straight into the database, without a daemon to ask: for whoever is locked out',
      },
      examples: ['reeve token create --save', 'reeve token create --user ann --days 90 --scopes read,decide'],
    },
    run: async ({ rooms, caller }, { user: name, label, scopes, days }) => {
      const user = await rooms.users.get(name);
      refuseWider(caller, rightsOf(user.roles, scopes), 'such a token');
      const expiresInMs = days === undefined ? undefined : days * DAY_MS;
      return rooms.tokens.create({ user: user.id, label, scopes, expiresInMs, by: caller.id });
    },
  }),
  defineOperation({
    name: 'token.list',
    summary: 'List tokens, without the tokens themselves',
    access: 'admin',
    input: z.object({ user: z.string().max(254).optional().describe('Only those of this user') }),
    output: z.object({ items: z.array(tokenShape) }),
    errors: ['USER_UNKNOWN'],
    http: { method: 'GET', path: '/tokens' },
    cli: {
      words: 'token list',
      columns: ['token_id', 'user', 'label', 'state', 'scopes', 'expires_at', 'last_used_at'],
      examples: ['reeve token list', 'reeve token list --user ann'],
    },
    run: async ({ rooms }, { user }) => ({
      items: await rooms.tokens.list(user === undefined ? undefined : (await rooms.users.get(user)).id),
    }),
  }),
  defineOperation({
    name: 'token.revoke',
    summary: 'Revoke a token, at once',
    access: 'admin',
    input: z.object({
      token: z
        .string()
        .regex(/^tok-[0-9a-f]{12}$/, 'the id of a token, like tok-0123456789ab')
        .describe('Its id, not the token itself'),
      reason: z.string().max(1_000).optional().describe('Why'),
    }),
    output: tokenShape,
    errors: ['TOKEN_UNKNOWN', 'LAST_ADMIN'],
    http: { method: 'DELETE', path: '/tokens/{token}' },
    cli: { words: 'token revoke', args: ['token'], examples: ['reeve token revoke tok-0123456789ab'] },
    run: ({ rooms }, { token }) => rooms.tokens.revoke(token),
  }),
];
