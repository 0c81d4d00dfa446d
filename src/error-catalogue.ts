/** One row per failure. The code is what callers may rely on; docs/errors.md is written from this table. */
export interface ErrorRow {
  readonly title: string;
  readonly status: number;
  readonly exit: ExitCode;
  /** Who must act before it can work: the caller fixes the call, we retry, nobody (it clears by itself), or a person. */
  readonly actor: 'caller' | 'retry' | 'wait' | 'human';
  /** What happened, to what. {names} are filled from the error's details. */
  readonly says: string;
  /** What to do next. */
  readonly next: string;
}

/** Exit codes are control flow for scripts; the words are those of `reeve help exit-codes`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  conflict: 5,
  held: 6,
  nothing: 7,
  unavailable: 8,
  timeout: 9,
  differs: 10,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const ERRORS = {
  INTERNAL: {
    title: 'Unexpected failure',
    status: 500,
    exit: EXIT.failed,
    actor: 'human',
    says: 'Something failed that reeve did not foresee.',
    next: 'Look for this moment in the daemon log, then run: reeve doctor',
  },
  USAGE: {
    title: 'Wrong usage',
    status: 400,
    exit: EXIT.usage,
    actor: 'caller',
    says: '{problem}',
    next: '{hint}',
  },
  INVALID_INPUT: {
    title: 'Invalid input',
    status: 400,
    exit: EXIT.usage,
    actor: 'caller',
    says: 'The input of {operation} is not valid: {problem}',
    next: 'Correct it and ask again. Its form: reeve schema {command}',
  },
  INVALID_ID: {
    title: 'Invalid id',
    status: 400,
    exit: EXIT.usage,
    actor: 'caller',
    says: '{value} is not a valid {kind} id: {rule}',
    next: 'Use an id of that form.',
  },
  BODY_TOO_LARGE: {
    title: 'Request too large',
    status: 413,
    exit: EXIT.usage,
    actor: 'caller',
    says: 'The request body is larger than {limitBytes} bytes.',
    next: 'Send less at once.',
  },
  NO_SUCH_ROUTE: {
    title: 'No such route',
    status: 404,
    exit: EXIT.notFound,
    actor: 'caller',
    says: 'There is nothing at {method} {path}.',
    next: 'See /api/v1/openapi.json or /docs for what there is.',
  },
  DENIED: {
    title: 'Not allowed',
    status: 403,
    exit: EXIT.denied,
    actor: 'human',
    says: '{caller} may not do this: {why}',
    next: 'Ask someone who may, or use a token that allows it.',
  },
  UNAUTHENTICATED: {
    title: 'No identity',
    status: 401,
    exit: EXIT.denied,
    actor: 'human',
    says: 'This call needs a token: {why}',
    next: 'Pass --token TOKEN, or set REEVE_TOKEN.',
  },
  CONFIG_INVALID: {
    title: 'Invalid configuration',
    status: 500,
    exit: EXIT.usage,
    actor: 'human',
    says: 'The configuration is not valid:\n{problems}',
    next: 'Correct it, then look at the result with: reeve config show --sources',
  },
  CONFIG_UNREADABLE: {
    title: 'Configuration cannot be read',
    status: 500,
    exit: EXIT.usage,
    actor: 'human',
    says: '{file} cannot be read: {problem}',
    next: 'Check the path and its permissions.',
  },
  INSECURE_BIND: {
    title: 'Refused to listen beyond this machine',
    status: 500,
    exit: EXIT.usage,
    actor: 'human',
    says: 'http.host is {host}, which other machines can reach, and no API token exists: anyone there would be admin.',
    next: 'Listen on 127.0.0.1 and put a proxy that authenticates in front.',
  },
  PORT_TAKEN: {
    title: 'Port taken',
    status: 500,
    exit: EXIT.conflict,
    actor: 'human',
    says: '{host}:{port} is in use by another program.',
    next: 'Stop that program, or choose another port: reeve daemon --http-port PORT (0 takes any free one)',
  },
  DATA_DIR_HELD: {
    title: 'Data directory in use',
    status: 500,
    exit: EXIT.conflict,
    actor: 'human',
    says: '{dataDir} is held by another reeve daemon: process {pid}, since {since}, at {address}.',
    next: 'Use that one, stop it (kill {pid}), or give this one its own directory: reeve daemon --data-dir DIR',
  },
  DATA_DIR_UNWRITABLE: {
    title: 'Data directory not writable',
    status: 500,
    exit: EXIT.failed,
    actor: 'human',
    says: '{dataDir} cannot be written: {problem}',
    next: 'Give this user write permission, or choose another: reeve daemon --data-dir DIR',
  },
  DAEMON_UNREACHABLE: {
    title: 'No daemon',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'human',
    says: 'No reeve daemon answers at {url} ({problem}).',
    next: 'Start one: reeve daemon   (or name a running one: --url URL)',
  },
  SHUTTING_DOWN: {
    title: 'Shutting down',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'retry',
    says: 'The daemon is shutting down.',
    next: 'Ask again when it is back.',
  },
  REDIS_NOT_FOUND: {
    title: 'No Redis server program',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'human',
    says: 'No redis-server or valkey-server was found, and none could be fetched: {problem}',
    next: '{command}',
  },
  REDIS_START_FAILED: {
    title: 'Redis did not start',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'human',
    says: 'The embedded Redis ({program}) did not start: {problem}',
    next: 'Its log is {log}',
  },
  REDIS_UNAVAILABLE: {
    title: 'Redis unavailable',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'retry',
    says: 'Redis at {address} does not answer: {problem}',
    next: 'Nothing was changed. Try again; if it lasts: reeve doctor',
  },
  REDIS_REFUSED: {
    title: 'Redis refused the login',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'human',
    says: 'Redis at {address} refused the login: {problem}',
    next: 'Correct the user and password in REDIS_URL.',
  },
  REDIS_REPLY_UNKNOWN: {
    title: 'Outcome unknown',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'caller',
    says: 'The connection to Redis broke after a command was sent: it may or may not have run.',
    next: 'Look at the state, then ask again; calls that carry an id may simply be repeated.',
  },
  SCRIPT_REPLY_INVALID: {
    title: 'Script answered out of form',
    status: 500,
    exit: EXIT.failed,
    actor: 'human',
    says: 'The script {script} answered something it should not: {problem}',
    next: 'Another version of reeve may share this Redis. Run: reeve doctor',
  },
  STORE_UNAVAILABLE: {
    title: 'Database unavailable',
    status: 503,
    exit: EXIT.unavailable,
    actor: 'retry',
    says: 'The database {store} does not answer: {problem}',
    next: 'Try again; if it lasts: reeve doctor',
  },
  STORE_NEWER: {
    title: 'Database is newer than this reeve',
    status: 500,
    exit: EXIT.conflict,
    actor: 'human',
    says: 'The database {store} is at schema {found}, this reeve knows only up to {known}.',
    next: 'Run a newer reeve, or restore a backup made by this version.',
  },
  STORE_ALTERED: {
    title: 'Migration altered',
    status: 500,
    exit: EXIT.conflict,
    actor: 'human',
    says: 'Migration {migration} was applied to {store} with another text than this reeve has.',
    next: 'Run the reeve that made it; a migration is never edited after release.',
  },
  BAD_CURSOR: {
    title: 'Bad cursor',
    status: 400,
    exit: EXIT.usage,
    actor: 'caller',
    says: 'The cursor {cursor} was not made by this command.',
    next: 'Leave it out to start from the beginning.',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
