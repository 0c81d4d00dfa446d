import type { Output } from '../output.ts';

export interface Change {
  readonly approval_id: string;
  readonly outcome: 'pending' | 'approved' | 'rejected' | 'over';
  readonly state: string;
  readonly because: string;
  readonly risk?: { readonly score: number };
  readonly approvals: { readonly needed: number; readonly given: number; readonly waiting_for: readonly string[] };
  readonly decisions: readonly { readonly by: string; readonly action: string; readonly says: string }[];
  readonly next: string;
}

/** One line, its first word the verdict; then what people said, quoted: it is data. */
export function show(output: Output, change: Change): void {
  const { approval_id, outcome, state, approvals, risk, because, decisions, next } = change;
  const word = { approved: 'ok', over: 'ok', pending: 'held', rejected: 'error' }[outcome];
  const votes = `${approvals.given}/${approvals.needed}`;
  output.print(
    `${word} ${outcome} approval=${approval_id} state=${state} risk=${risk?.score ?? '?'} approvals=${votes} because=${JSON.stringify(because)}`,
  );
  for (const { by, action, says } of decisions) output.print(`${action} by=${by} says=${JSON.stringify(says)}`);
  output.hint(`next  ${next}`);
}
