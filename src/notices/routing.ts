import { fits } from '../events/pattern.ts';
import type { NotificationRoute } from '../notification-route.ts';
import type { Audience, Notice } from './notice.ts';

type Route = Pick<NotificationRoute, 'name' | 'onCall'> & {
  readonly users: readonly string[];
  readonly roles: readonly string[];
  readonly events: readonly string[];
};

/** What roles and groups a person has. */
export type RolesOf = (user: string) => readonly string[];

/** Which routes a notice takes: those of the people it is for, of their roles, and of whoever is on call. */
export const routesFor = <R extends Route>(
  routes: readonly R[],
  event: string,
  { to }: Pick<Notice, 'to'>,
  rolesOf: RolesOf,
): R[] =>
  routes.filter((route) => fits(route.events, event) && to.some((audience) => reaches(route, audience, rolesOf)));

function reaches(route: Route, audience: Audience, rolesOf: RolesOf): boolean {
  const { users, roles } = route;
  if ('role' in audience) return roles.includes(audience.role);
  const isFor = (name: string) =>
    users.includes('*') || users.includes(name) || rolesOf(name).some((role) => roles.includes(role));
  if ('user' in audience) return isFor(audience.user);
  const { onCall } = audience;
  // The name of whoever is on call may be a person, a role, or a route itself.
  return route.onCall || (onCall !== '' && (route.name === onCall || roles.includes(onCall) || isFor(onCall)));
}
