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

export interface Link {
  /** Its number; none where it is known already that no row is missing before it. */
  readonly seq?: number;
  readonly record: string;
  readonly hash: string;
}

/** What is wrong with a chain, and from which row on nothing can be believed. */
export interface Break {
  readonly seq: number;
  readonly problem: string;
}

/** Follows the rows from a head that is good. Answers with the new head, or with the first row that does not fit. */
export function follow(from: Head, links: readonly Link[]): { readonly head: Head; readonly broken?: Break } {
  let { seq, hash: before } = from;
  // Run for every row there is: nothing in it but what must be.
  for (let at = 0; at < links.length; at++) {
    const link = links[at] as Link;
    const expected = linkHash(before, link.record);
    if (link.hash !== expected || (link.seq ?? seq + 1) !== seq + 1) {
      return { head: { seq, hash: before }, broken: breakAt(seq, link) };
    }
    seq += 1;
    before = expected;
  }
  return { head: { seq, hash: before } };
}

function breakAt(seq: number, link: Link): Break {
  const problem =
    (link.seq ?? seq + 1) === seq + 1
      ? 'its hash is not that of its record and of the row before: it, or its place, was changed'
      : `row ${seq + 1} is missing: the one after ${seq} is ${link.seq}`;
  return { seq: seq + 1, problem };
}
