import { ReeveError, reason } from '../errors.ts';

/**
 * What an error of the Redis client means for a caller. ioredis gives most of these no code, so this is the one place
 * that looks at their names and wording; undefined means that the error did not come from a broken or refusing server.
 */
export function redisFailure(error: unknown, address: string): ReeveError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error ? String(error.code) : '';
  const problem = reason(error);
  // The connection closed while a reply was awaited: the command may have run.
  if (error.name === 'MaxRetriesPerRequestError' || problem === 'Command timed out') {
    return new ReeveError('REDIS_REPLY_UNKNOWN', { address }, { cause: error });
  }
  if (/^(WRONGPASS|NOAUTH|NOPERM)\b|^ERR (invalid password|AUTH|Client sent AUTH)/.test(problem)) {
    return new ReeveError('REDIS_REFUSED', { address, problem }, { cause: error });
  }
  if (
    /^E(CONN|NOENT|NOTFOUND|PIPE|HOSTUNREACH|NETUNREACH|TIMEDOUT|AI_AGAIN)/.test(code) ||
    /^(LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|TRYAGAIN)\b/.test(problem) ||
    /^(Stream isn't writeable|Connection is closed|Connection in subscriber mode|All sentinels are unreachable)/.test(
      problem,
    ) ||
    error.name === 'ClusterAllFailedError'
  ) {
    return new ReeveError('REDIS_UNAVAILABLE', { address, problem: unavailable(code, problem) }, { cause: error });
  }
  return undefined;
}

const unavailable = (code: string, problem: string): string =>
  problem.startsWith("Stream isn't writeable") ? 'there is no connection' : problem || code;
