import { ReeveError } from '../errors.ts';

/** An answer of GitHub that is none of the good ones, as far as it matters for what to do next. */
export interface FaultyAnswer {
  readonly source: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly message: string;
  /** Our own time, where the answer has no date. */
  readonly now: number;
}

const HOUR = 3_600;
/** What GitHub asks for when it does not say how long. */
const SECONDARY_SECONDS = 60;

/** What an HTTP answer means. Limits are told apart from a missing right: both are 403. */
export function faultOf(answer: FaultyAnswer): ReeveError {
  const { source, status, message } = answer;
  const problem = message.slice(0, 300) || `HTTP ${status}`;
  const limit = limitOf(answer);
  if (limit) return new ReeveError('SOURCE_RATE_LIMITED', { source, ...limit });
  // During an outage GitHub also refuses good tokens; then it treats the caller as anonymous, whose limit is 60.
  if (status === 401 && answer.headers['x-ratelimit-limit'] === '60' && /^bad credentials$/i.test(message) === false)
    return new ReeveError('SOURCE_UNREACHABLE', { source, problem });
  if (status === 401) return new ReeveError('SOURCE_UNAUTHORIZED', { source, problem });
  if (status === 403) return new ReeveError('SOURCE_FORBIDDEN', { source, problem });
  if (status === 409) return new ReeveError('SOURCE_EMPTY', { source });
  if (status === 404 || status === 410 || status === 422 || status === 451)
    return new ReeveError('SOURCE_MISSING', { source, problem });
  return new ReeveError('SOURCE_UNREACHABLE', { source, problem: `HTTP ${status}: ${problem}` });
}

/** One entry of the list of errors in a GraphQL answer. */
export interface GraphqlError {
  readonly type?: string;
  readonly message: string;
  readonly path?: readonly unknown[];
}

/** GraphQL answers 200 and says in the body that something is not there or not allowed. */
export function refusal(source: string, errors: readonly GraphqlError[]): ReeveError {
  const [first] = errors;
  const problem = first?.message ?? 'the answer was empty';
  if (first?.type === 'NOT_FOUND') return new ReeveError('SOURCE_MISSING', { source, problem });
  if (first?.type === 'FORBIDDEN' || first?.type === 'INSUFFICIENT_SCOPES')
    return new ReeveError('SOURCE_FORBIDDEN', { source, problem });
  return new ReeveError('SOURCE_UNREACHABLE', { source, problem });
}

/** Primary: the hour is used up. Secondary: too much at once. Undefined: this is no limit. */
function limitOf({ status, headers, message, now }: FaultyAnswer) {
  if (status !== 403 && status !== 429) return undefined;
  const date = Date.parse(headers.date ?? '');
  const theirs = Number.isFinite(date) ? date : now;
  const asked = retryAfter(headers['retry-after'], theirs);
  if (headers['x-ratelimit-remaining'] === '0') {
    const reset = Number(headers['x-ratelimit-reset']) * 1000;
    const wait = Number.isFinite(reset) ? Math.ceil((reset - theirs) / 1000) + 1 : SECONDARY_SECONDS;
    return { limit: 'primary', retryAfterSeconds: bounded(Math.max(wait, asked ?? 0)) };
  }
  if (asked !== undefined) return { limit: 'secondary', retryAfterSeconds: bounded(asked) };
  if (status === 429 || /rate limit|abuse detection/i.test(message))
    return { limit: 'secondary', retryAfterSeconds: SECONDARY_SECONDS };
  return undefined;
}

/** Seconds or a date, as HTTP allows. A date is read against the server's own clock. */
export function retryAfter(header: string | undefined, theirNow: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^-?\d+$/.test(header.trim())) return Number(header);
  const at = Date.parse(header);
  return Number.isFinite(at) ? Math.ceil((at - theirNow) / 1000) : undefined;
}

/** Neither at once nor next week, whatever a wrong clock says. */
const bounded = (seconds: number): number => Math.min(2 * HOUR, Math.max(1, seconds));
