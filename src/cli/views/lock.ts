import type { ReeveError } from '../../errors.ts';
import type { Hold } from '../../hold.ts';
import type { Acquired } from '../lock-client.ts';
import type { Output } from '../output.ts';
import { facts, line } from '../render.ts';

interface Lock {
  readonly outcome?: string;
  readonly state?: string;
  readonly lock: string;
  readonly holders?: readonly Readonly<Record<string, unknown>>[];
  readonly waiters?: readonly Readonly<Record<string, unknown>>[];
  readonly capacity?: Readonly<Record<string, unknown>>;
  readonly [more: string]: unknown;
}

/** A verdict for what was done; the lock with its people for what was asked. */
export function show(output: Output, answer: Lock): void {
  const { outcome, holders = [], waiters = [], capacity, ...own } = answer;
  if (outcome !== undefined) {
    output.print(`ok ${line({ outcome, ...own })}`);
  } else if (output.form === 'lines') {
    output.print(`${answer.state} ${line({ ...own, state: undefined, ...capacity })}`);
    for (const holder of holders) output.print(`holder ${line(holder)}`);
    for (const waiter of waiters) output.print(`waiter ${line(waiter)}`);
  } else {
    for (const text of facts({ ...own, ...capacity })) output.print(text);
    for (const holder of holders) output.print(`\nholder\n${indented(holder)}`);
    for (const waiter of waiters) output.print(`\nwaiter\n${indented(waiter)}`);
  }
}

const indented = (row: Readonly<Record<string, unknown>>) =>
  facts(row)
    .map((text) => `  ${text}`)
    .join('\n');

export const grantLine = ({ lock, lock_id, fencing_token, expires_at }: Acquired): string =>
  `ok ${line({ lock, lock_id, fencing_token, until: expires_at })}`;

const HELD_BACK = new Set(['LOCK_HELD', 'WAIT_OVER', 'DEADLOCK_DETECTED', 'QUEUE_FULL']);

/** Nothing is wrong with the call: somebody else is in the way. */
export const isHeldBack = ({ code }: ReeveError): boolean => HELD_BACK.has(code);

export function heldLine({ details, next }: ReeveError): string {
  const { holder, clears_at, position, actions = [] } = (details.hold ?? {}) as Partial<Hold>;
  const fix = actions.find(({ allowed }) => allowed)?.command ?? next;
  return `held ${line({ lock: details.lock, by: holder, position, until: clears_at ?? undefined, fix })}`;
}
