import { z } from 'zod';
import { ReeveError } from '../errors.ts';
import { ACCESS_NAMES, ROLE_NAMES } from '../identity/permissions.ts';
import { SESSION_SECONDS } from '../identity/sessions.ts';
import { defineOperation, type Operation } from './operation.ts';

const sessionShape = z
  .object({
    session_id: z.string(),
    user: z.string(),
    created_at: z.string(),
    last_active: z.string(),
    expires_at: z.string(),
    ip: z.string(),
    user_agent: z.string(),
  })
  .meta({ id: 'Session' });

/** Browser sessions, and the question who one is. */
export const sessionOperations: readonly Operation[] = [
  defineOperation({
    name: 'session.whoami',
    summary: 'Say who you are and what you may do',
    access: 'read',
    input: z.object({}),
    output: z.object({
      user: z.string(),
      roles: z.array(z.enum(ROLE_NAMES)),
      access: z.array(z.enum(ACCESS_NAMES)),
      only_as_itself: z.array(z.enum(ACCESS_NAMES)).describe('What it may do only as the agent of its own id'),
      session_id: z.string().optional(),
    }),
    errors: [],
    http: { method: 'GET', path: '/sessions/current' },
    cli: { words: 'whoami', examples: ['reeve whoami', 'reeve whoami --json access'] },
    run: async ({ caller: { id, roles = [], access, own = [], session } }) => ({
      user: id,
      roles: [...roles],
      access: [...access],
      only_as_itself: [...own],
      ...(session && { session_id: session }),
    }),
  }),
  defineOperation({
    name: 'session.begin',
    summary: 'Begin a browser session with a token',
    description:
      'Sets a cookie that scripts cannot read and other sites cannot send. A session that the browser brought along ends. It lives for a day, no longer than its token, and ends when the roles of its user change.',
    access: 'open',
    input: z.object({ token: z.string().min(1).max(200).describe('An API token') }),
    output: sessionShape,
    errors: ['UNAUTHENTICATED'],
    http: { method: 'POST', path: '/sessions', answers: { 201: 'Begun' }, status: () => 201 },
    cli: { words: 'session begin', args: ['token'], examples: ['reeve session begin "$REEVE_TOKEN"'] },
    run: async ({ rooms, caller, cookie }, { token }) => {
      const bearer = await rooms.tokens.bearerOf(token);
      if (!bearer) throw new ReeveError('UNAUTHENTICATED', { why: 'the one given is unknown, expired or revoked' });
      if (cookie?.secret) await rooms.sessions.endOf(cookie.secret);
      const from = { ip: caller.ip ?? '', userAgent: caller.userAgent ?? '' };
      const { secret, session } = await rooms.sessions.begin(bearer, from);
      cookie?.keep(secret, SESSION_SECONDS);
      return session;
    },
  }),
  defineOperation({
    name: 'session.leave',
    summary: 'End the session of this browser',
    access: 'open',
    input: z.object({}),
    output: z.object({ ended: z.boolean() }),
    errors: [],
    http: { method: 'DELETE', path: '/sessions/current' },
    cli: { words: 'session leave', view: 'verdict', examples: ['reeve session leave'] },
    run: async ({ rooms, cookie }) => {
      const ended = cookie?.secret !== undefined && (await rooms.sessions.endOf(cookie.secret));
      cookie?.drop();
      return { ended };
    },
  }),
  defineOperation({
    name: 'session.list',
    summary: 'List the sessions of a user',
    access: 'admin',
    input: z.object({ user: z.string().min(1).max(254).describe('Id, address or alias') }),
    output: z.object({ items: z.array(sessionShape) }),
    errors: ['USER_UNKNOWN'],
    http: { method: 'GET', path: '/users/{user}/sessions' },
    cli: {
      words: 'session list',
      args: ['user'],
      columns: ['session_id', 'created_at', 'last_active', 'ip', 'user_agent'],
      examples: ['reeve session list ann'],
    },
    run: async ({ rooms }, { user }) => ({ items: await rooms.sessions.list((await rooms.users.get(user)).id) }),
  }),
  defineOperation({
    name: 'session.end',
    summary: 'End the sessions of a user, or one of them',
    access: 'admin',
    input: z.object({
      user: z.string().min(1).max(254).describe('Id, address or alias'),
      session: z
        .string()
        .regex(/^[0-9a-f]{64}$/, 'the id of a session')
        .optional()
        .describe('Only this one'),
    }),
    output: z.object({ user: z.string(), ended: z.int() }),
    errors: ['USER_UNKNOWN', 'SESSION_UNKNOWN'],
    http: { method: 'DELETE', path: '/users/{user}/sessions' },
    cli: { words: 'session end', args: ['user'], view: 'verdict', examples: ['reeve session end ann'] },
    run: async ({ rooms }, { user: name, session }) => {
      const { id: user } = await rooms.users.get(name);
      if (session === undefined) return { user, ended: await rooms.sessions.endAll({ id: user }) };
      const theirs = (await rooms.sessions.list(user)).some(({ session_id }) => session_id === session);
      if (!theirs) throw new ReeveError('SESSION_UNKNOWN', { session });
      return { user, ended: Number(await rooms.sessions.end(session)) };
    },
  }),
];
