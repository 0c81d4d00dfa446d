import { assetTroubleOperations } from './asset-trouble.ts';
import { assetOperations } from './assets.ts';
import { eventOperations } from './events.ts';
import type { Operation } from './operation.ts';
import { syncOperations } from './sync.ts';
import { systemOperations } from './system.ts';

/** Everything one can ask of the daemon. Routes, the OpenAPI document, commands and tools are made from this list. */
export const operations: readonly Operation[] = [
  ...systemOperations,
  ...eventOperations,
  ...assetOperations,
  ...assetTroubleOperations,
  ...syncOperations,
];
