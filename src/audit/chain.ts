import { hash } from 'node:crypto';

/** Where a chain ends: the number and hash of its last row. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** Before the first row. */
export const START: Head = { seq: 0, hash: '0'.repeat(64) };

/** The hash of a row is over the one before it and its own record, so that it stands for everything up to here. */
export const linkHash = (before: string, record: string): string => hash('sha256', `${before}\n${record}`, 'hex');

/** The same value is the same text, whoever writes it: names in order, no spaces, nothing that is undefined. */
export const canonicalJson = (value: unknown): string => JSON.stringify(inOrder(value));

function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const fields = value as Readonly<Record<string, unknown>>;
  const ordered: Record<string, unknown> = {};
  for (const name of Object.keys(fields).toSorted()) ordered[name] = inOrder(fields[name]);
  return ordered;
}

/** Rows in their order, column by column: of very many rows an object for each costs more than to look at it. */
export interface Links {
  readonly records: readonly string[];
  readonly hashes: readonly string[];
  /** None where it is known already that no row is missing among them. */
  readonly numbers?: readonly number[];
}

/** What is wrong with a chain, and from which row on nothing can be believed. */
export interface Break {
  readonly seq: number;
  readonly problem: string;
}

/** Follows the rows from a head that is good. Answers with the new head, or with the first row that does not fit. */
export function follow(
  from: Head,
  { records, hashes, numbers }: Links,
): { readonly head: Head; readonly broken?: Break } {
  let before = from.hash;
  // Run for every row there is: nothing in it but what must be.
  for (let at = 0; at < records.length; at++) {
    const seq = from.seq + at + 1;
    const expected = linkHash(before, records[at]!);
    if (hashes[at] !== expected || (numbers !== undefined && numbers[at] !== seq)) {
      return { head: { seq: seq - 1, hash: before }, broken: breakAt(seq, numbers?.[at] ?? seq) };
    }
    before = expected;
  }
  return { head: { seq: from.seq + records.length, hash: before } };
}

function breakAt(seq: number, found: number): Break {
  const problem =
    found === seq
      ? 'its hash is not that of its record and of the row before: it, or its place, was changed'
      : `row ${seq} is missing: the one after ${seq - 1} is ${found}`;
  return { seq, problem };
}
