import type { Operation } from '../operations/operation.ts';

/** Asks an operation: in the daemon at once, in `reeve mcp` over HTTP. */
export type Ask = (operation: Operation, input: unknown, signal: AbortSignal) => Promise<unknown>;
