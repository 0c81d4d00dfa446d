import { ERRORS, type ErrorCode, type ErrorRow } from './error-catalogue.ts';

export type { ErrorCode } from './error-catalogue.ts';

/** Facts about a failure. They fill the wording's {placeholders} and travel to the caller as they are: no secrets. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** Every failure that reeve foresees. Its code decides HTTP status, exit code, wording and next step; see the catalogue. */
export class ReeveError extends Error {
  override readonly name = 'ReeveError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}, options?: { readonly cause?: unknown }) {
    super(fill(ERRORS[code].says, details), options);
    this.code = code;
    this.details = details;
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }

  /** What to do next, as a runnable command where there is one. */
  get next(): string {
    return fill(this.row.next, this.details);
  }
}

/** The one form in which a failure leaves the daemon: the body of an HTTP problem, of `--json` and of an MCP error. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly next: string;
  readonly actor: ErrorRow['actor'];
  readonly details?: ErrorDetails;
  readonly retry_after_seconds?: number;
}

export function toProblem(error: ReeveError): Problem {
  const { row, code, details } = error;
  const retryAfter = details.retryAfterSeconds;
  return {
    type: `urn:reeve:error:${code}`,
    title: row.title,
    status: row.status,
    code,
    detail: error.message,
    next: error.next,
    actor: row.actor,
    ...(Object.keys(details).length > 0 && { details }),
    ...(typeof retryAfter === 'number' && { retry_after_seconds: retryAfter }),
  };
}

/** Anything thrown, as a ReeveError. What nobody foresaw becomes INTERNAL, with the original as its cause. */
export const asReeveError = (thrown: unknown): ReeveError =>
  thrown instanceof ReeveError ? thrown : new ReeveError('INTERNAL', {}, { cause: thrown });

/** A one-line account of anything thrown, for logs and for wording that quotes a foreign error. */
export function reason(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return thrown.errors.map(reason).join('; ');
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}

function fill(template: string, details: ErrorDetails): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => (name in details ? String(details[name]) : whole));
}
