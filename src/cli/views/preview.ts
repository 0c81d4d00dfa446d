import type { Output } from '../output.ts';
import { line } from '../render.ts';

interface Preview {
  readonly task_id: string;
  readonly config_version: number;
  readonly is_verified: boolean;
  readonly changes: readonly {
    readonly action: string;
    readonly lock: string;
    readonly is_free: boolean;
    readonly holder?: string;
    readonly until?: string;
    readonly purpose?: string;
  }[];
  readonly warnings: readonly string[];
  readonly errors: readonly string[];
}

/** What it would change, lock by lock, and whether each could be had now. */
export function show(
  output: Output,
  { task_id, config_version, is_verified, changes, warnings, errors }: Preview,
): void {
  output.print(`preview ${line({ task: task_id, version: config_version, verified: is_verified })}`);
  for (const { action, lock, is_free, holder, until, purpose } of changes) {
    output.print(`${is_free ? 'free' : 'held'} ${line({ lock, action, holder, until, purpose })}`);
  }
  for (const warning of warnings) output.print(`warning ${warning}`);
  for (const error of errors) output.print(`error ${error}`);
}
