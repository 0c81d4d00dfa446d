import { ReeveError, reason } from '../errors.ts';

/**
 * What an error of the Redis client means for a caller. ioredis gives most of these no code, so this is the one place
 * that looks at their names and wording; undefined means that the error did not come from a broken or refusing server.
 */
export function redisFailure(error: unknown, address: string): ReeveError | undefined {
  if (!(error instanceof Error)) return undefined;
  // A cluster that cannot be reached holds what its last node said.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  if (lastNodeError) return redisFailure(lastNodeError, address);
  const code = 'code' in error ? String(error.code) : '';
  const problem = reason(error);
  if (error.name === 'MaxRetriesPerRequestError' || REPLY_LOST.test(problem)) {
    return new ReeveError('REDIS_REPLY_UNKNOWN', { address }, { cause: error });
  }
  if (problem.startsWith('WRONGTYPE'))
    return new ReeveError('REDIS_KEY_FOREIGN', { address, problem }, { cause: error });
  if (REFUSING.test(problem)) return new ReeveError('REDIS_REFUSED', { address, problem }, { cause: error });
  if (UNREACHABLE.test(code) || NOT_NOW.test(problem) || NOT_SENT.test(problem)) {
    return new ReeveError('REDIS_UNAVAILABLE', { address, problem: unavailable(code, problem) }, { cause: error });
  }
  return undefined;
}

/** The connection closed, or patience ended, while a reply was awaited: the command may have run. */
const REPLY_LOST = /^(Command timed out|Connection is closed|Command aborted due to connection close)/;
const REFUSING = /^(WRONGPASS|NOAUTH|NOPERM)\b|^ERR (invalid password|AUTH|Client sent AUTH)/;
const UNREACHABLE = /^E(CONN|NOENT|NOTFOUND|PIPE|HOSTUNREACH|NETUNREACH|TIMEDOUT|AI_AGAIN)/;
/** Answers of a server that will not do it at present, and has not. */
const NOT_NOW =
  /^(LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS)\b|^ERR max number of clients reached/;
/** What the client says of commands that never left it. */
const NOT_SENT =
  /^(Stream isn't writeable|Cluster isn't ready|Cluster is ended|Too many Cluster redirections|Connection in subscriber mode|All sentinels are unreachable|Failed to refresh slots cache)/;

const unavailable = (code: string, problem: string): string =>
  /isn't (writeable|ready)/.test(problem) ? 'there is no connection' : problem || code;
