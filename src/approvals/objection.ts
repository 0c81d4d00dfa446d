import { ReeveError } from '../errors.ts';

/** What a script had against an answer, as the error that says so. */
export function objection([word, about = '', who = '']: readonly string[], approval: string, caller: string) {
  const denied = (why: string) => new ReeveError('APPROVAL_DENIED', { caller, approval, why });
  const stale = (why: string) => new ReeveError('APPROVAL_STALE', { approval, why });
  const settled = (why: string) => new ReeveError('APPROVAL_SETTLED', { approval, why });
  switch (word) {
    case 'UNKNOWN':
      return new ReeveError('APPROVAL_UNKNOWN', { approval });
    case 'NOT_ASSIGNED':
      return denied(`${about} was asked`);
    case 'OWN':
      return denied('nobody agrees to their own work');
    case 'VOTED':
      return settled(`${caller} has answered about this task already; take that back first`);
    case 'SUPERSEDED':
      return settled(about ? `${about} has settled it` : 'it was edited, and people were asked anew');
    case 'ANSWERED':
      return settled(`${who} has answered: ${about.toLowerCase()}`);
    case 'STATE':
      return settled(`its task is ${about}`);
    case 'STALE':
      return stale('the task was edited');
    case 'EXPIRED':
      return settled(`it was due at ${about}, and ${who || 'somebody else'} is asked since`);
    case 'TWICE':
      return settled(`${about} is about the same task`);
    case 'CHANGED':
      return stale('it was passed on or edited at the same time');
    case 'NO_VOTE':
      return settled('there is no approval of yours to take back');
    default:
      return undefined;
  }
}
