import { gateMetrics } from './approval-gate.ts';
import { auditMetrics } from './audit.ts';
import type { Bench } from './harness.ts';

export const approvals: Bench = {
  name: 'approvals',
  summary: 'What the human gate and its audit cost',
  run: async (surroundings) => [...(await gateMetrics(surroundings)), ...(await auditMetrics(surroundings))],
};
