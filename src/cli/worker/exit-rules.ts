import { ReeveError } from '../../errors.ts';

export const FAILURE_CLASSES = ['task', 'timeout', 'quota', 'auth', 'infra', 'cancelled'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** How the end of a command is read. */
export interface ExitRules {
  readonly codes: ReadonlyMap<number, FailureClass>;
  /** Looked for at the end of the output of a command that failed with a code that says nothing. */
  readonly quota: RegExp;
  readonly auth: RegExp;
}

/**
 * Codes by which a command says that the task is not to blame, from sysexits.h where there is one. A signal (a crash,
 * the kernel short of memory) is not among them: a task that kills each agent it is given to must run out of attempts.
 */
export const EXIT_CODES: Readonly<Record<number, FailureClass>> = {
  69: 'infra',
  71: 'infra',
  74: 'infra',
  75: 'infra',
  77: 'auth',
  79: 'quota',
  126: 'infra',
  127: 'infra',
};

/** Narrow on purpose: agents write about errors all day, and a class that costs no attempt must not be had by chance. */
export const QUOTA_PATTERN =
  'usage limit reached(?:\\|(?<resets>\\d{10}))?|rate_limit_error|insufficient_quota|quota exceeded|credit balance is too low';
export const AUTH_PATTERN = 'authentication_error|invalid_api_key|invalid api key|please run /login|not logged in';

export interface RuleTexts {
  /** As in 75=infra,80=quota; they come on top of the usual ones. */
  readonly exitCodes?: string | undefined;
  readonly quotaPattern?: string | undefined;
  readonly authPattern?: string | undefined;
}

export function readRules({ exitCodes = '', quotaPattern, authPattern }: RuleTexts): ExitRules {
  const usual = Object.entries(EXIT_CODES).map(([code, kind]) => [Number(code), kind] as const);
  const own = exitCodes.split(',').filter(Boolean).map(readPair);
  return {
    codes: new Map([...usual, ...own]),
    quota: pattern('--quota-pattern', quotaPattern ?? QUOTA_PATTERN),
    auth: pattern('--auth-pattern', authPattern ?? AUTH_PATTERN),
  };
}

function readPair(text: string): readonly [number, FailureClass] {
  const [, code, kind] = /^\s*(\d{1,3})\s*=\s*(\w+)\s*$/.exec(text) ?? [];
  const known = FAILURE_CLASSES.find((one) => one === kind);
  if (code !== undefined && known && Number(code) > 0 && Number(code) < 256) return [Number(code), known];
  const problem = `--exit-codes: ${text} is not of the form CODE=CLASS`;
  throw new ReeveError('USAGE', {
    problem,
    hint: `Classes: ${FAILURE_CLASSES.join(', ')}. As in --exit-codes 80=quota`,
  });
}

function pattern(flag: string, text: string): RegExp {
  try {
    return new RegExp(text, 'i');
  } catch {
    throw new ReeveError('USAGE', { problem: `${flag}: not a regular expression`, hint: 'reeve worker --help' });
  }
}
