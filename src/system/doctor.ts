import { asReeveError } from '../errors.ts';

/** What a check found. A finding that is not ok says how to mend it. */
export interface Finding {
  readonly check: string;
  readonly result: 'ok' | 'warn' | 'fail' | 'skipped';
  readonly says: string;
  readonly fix?: string;
}

/** One question. It answers with findings, of which there may be none if the question does not arise. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<readonly Omit<Finding, 'check'>[]>;
}

/** Runs the checks one after the other; one that breaks is itself a finding, and the rest still run. */
export async function diagnose(
  checks: readonly Check[],
  explain: (error: unknown) => Error | undefined,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { name, run } of checks) {
    try {
      findings.push(...(await run()).map((finding) => ({ check: name, ...finding })));
    } catch (error) {
      const { message, next } = asReeveError(explain(error) ?? error);
      findings.push({ check: name, result: 'fail', says: message, fix: next });
    }
  }
  return findings;
}

/** Nothing failed; warnings are for people to weigh. */
export const isHealthy = (findings: readonly Finding[]): boolean => findings.every(({ result }) => result !== 'fail');

export const ok = (says: string) => ({ result: 'ok', says }) as const;
export const warn = (says: string, fix: string) => ({ result: 'warn', says, fix }) as const;
export const fail = (says: string, fix: string) => ({ result: 'fail', says, fix }) as const;
export const skipped = (says: string) => ({ result: 'skipped', says }) as const;
