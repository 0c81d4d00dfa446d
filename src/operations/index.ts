import { agentOperations } from './agents.ts';
import { analyticsOperations } from './analytics.ts';
import { approvalOperations } from './approvals.ts';
import { assetTroubleOperations } from './asset-trouble.ts';
import { assetOperations } from './assets.ts';
import { auditOperations } from './audit.ts';
import { changeOperations } from './changes.ts';
import { delegationOperations } from './delegations.ts';
import { eventOperations } from './events.ts';
import { executionOperations } from './executions.ts';
import { journalOperations } from './journal.ts';
import { lockRequestOperations } from './lock-requests.ts';
import { lockOperations } from './locks.ts';
import { migrationOperations } from './migration.ts';
import { notificationOperations } from './notifications.ts';
import type { Operation } from './operation.ts';
import { policyOperations } from './policies.ts';
import { sessionOperations } from './sessions.ts';
import { settingOperations } from './settings.ts';
import { severalOperations } from './several.ts';
import { syncOperations } from './sync.ts';
import { systemOperations } from './system.ts';
import { taskArchiveOperations } from './task-archive.ts';
import { taskGateOperations } from './task-gate.ts';
import { taskOperations } from './tasks.ts';
import { tokenOperations } from './tokens.ts';
import { userOperations } from './users.ts';
import { webhookOperations } from './webhooks.ts';
import { whyOperations } from './why.ts';
import { workOperations } from './work.ts';

/** Everything one can ask of the daemon. Routes, the OpenAPI document, commands and tools are made from this list. */
export const operations: readonly Operation[] = [
  ...systemOperations,
  ...settingOperations,
  ...eventOperations,
  ...lockRequestOperations,
  ...lockOperations,
  ...workOperations,
  ...severalOperations,
  ...executionOperations,
  ...taskOperations,
  ...taskGateOperations,
  ...taskArchiveOperations,
  ...changeOperations,
  ...approvalOperations,
  ...policyOperations,
  ...delegationOperations,
  ...agentOperations,
  ...whyOperations,
  ...assetOperations,
  ...assetTroubleOperations,
  ...syncOperations,
  ...userOperations,
  ...tokenOperations,
  ...sessionOperations,
  ...webhookOperations,
  ...notificationOperations,
  ...analyticsOperations,
  ...journalOperations,
  ...auditOperations,
  ...migrationOperations,
];
