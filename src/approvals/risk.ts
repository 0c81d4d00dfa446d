import type { LiveValues } from '../system/live-table.ts';

export type RiskThresholds = LiveValues['risk:thresholds'];
export const RISK_LEVELS = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const;
export type RiskLevel = (typeof RISK_LEVELS)[number];

/** Written with every score: one that another version computed is not compared with ours. */
export const RISK_ALGORITHM = 'reeve-risk-1';

/** What a risk is made of, in hundredths of the whole. */
const WEIGHTS = {
  resource_criticality: 40,
  change_magnitude: 30,
  blast_radius: 20,
  historical_failure_rate: 10,
} as const;
export type FactorName = keyof typeof WEIGHTS;
export const FACTOR_NAMES = Object.keys(WEIGHTS) as FactorName[];

/** One thing that makes a change risky: 0 to 100, and what speaks for it. */
export interface Finding {
  readonly value: number;
  readonly because: string;
}
export type Findings = Readonly<Record<FactorName, Finding>>;

export interface RiskFactor extends Finding {
  readonly name: FactorName;
  readonly weight: number;
  readonly points: number;
}

export interface Risk {
  /** A whole number: below a whole threshold exactly if the exact one is. */
  readonly score: number;
  readonly exact: number;
  readonly level: RiskLevel;
  readonly factors: readonly RiskFactor[];
  readonly assessed_by: string;
}

/** The weighted sum of the four factors. Whatever is no number between 0 and 100 counts as the end it lies beyond. */
export function assessRisk(findings: Findings, thresholds: RiskThresholds): Risk {
  const factors = FACTOR_NAMES.map((name): RiskFactor => {
    const value = clamp(findings[name].value);
    const weight = WEIGHTS[name] / 100;
    return { name, value, weight, points: (value * WEIGHTS[name]) / 100, because: findings[name].because };
  });
  const exact = Math.round(factors.reduce((sum, { value, name }) => sum + value * WEIGHTS[name], 0)) / 100;
  return { score: Math.floor(exact), exact, level: levelOf(exact, thresholds), factors, assessed_by: RISK_ALGORITHM };
}

/** What is not known to be small is taken to be great. */
const clamp = (value: number): number => (Number.isNaN(value) ? 100 : Math.min(100, Math.max(0, value)));

export function levelOf(score: number, { medium, high, critical }: RiskThresholds): RiskLevel {
  if (score >= critical) return 'CRITICAL';
  if (score >= high) return 'HIGH';
  return score >= medium ? 'MEDIUM' : 'LOW';
}

/** Ten for each doubling: the first few count most, and no number is too great. */
export const doublings = (count: number): number => Math.min(100, Math.round(10 * Math.log2(1 + count)));
