import type { Action, Hold } from '../hold.ts';
import type { Caller, Operation } from './operation.ts';

/** What a hold proposes, as far as this caller may do it: the rooms know what would help, and not what rights somebody has. */
export function forCaller(hold: Hold, caller: Caller, operations: readonly Operation[]): Hold {
  const actions = hold.actions.map((action): Action => {
    const access = operations.find((operation) => isMeant(operation, action))?.access;
    const may = access === undefined || access === 'open' || caller.access.has(access) || caller.own?.has(access);
    return may || !action.allowed ? action : { ...action, allowed: false, why_not: `it takes the right "${access}"` };
  });
  return { ...hold, actions };
}

/** A part of a path in braces stands for anything without a slash. */
function isMeant({ http: { method, path } }: Operation, action: Action): boolean {
  const asked = action.url?.replace(/^\/api\/v1/, '').split('/');
  const parts = path.split('/');
  return (
    action.method === method &&
    asked?.length === parts.length &&
    parts.every((part, at) => part.startsWith('{') || part === asked[at])
  );
}
