import { createHash } from 'node:crypto';

/** A thing in a folder, as Git sees it. */
export interface TreeItem {
  readonly name: Buffer;
  readonly mode: '100644' | '100755' | '120000' | '40000';
  readonly sha: string;
}

/** The name Git gives to a folder with these things in it. Names sort as bytes, a folder as if it ended in a slash. */
export function treeSha(items: readonly TreeItem[]): string {
  const sorted = items.toSorted((a, b) => Buffer.compare(sortKey(a), sortKey(b)));
  const body = Buffer.concat(
    sorted.flatMap(({ mode, name, sha }) => [Buffer.from(`${mode} `), name, Buffer.from([0]), Buffer.from(sha, 'hex')]),
  );
  return createHash('sha1').update(`tree ${body.byteLength}\0`).update(body).digest('hex');
}

const SLASH = Buffer.from('/');
const sortKey = ({ name, mode }: TreeItem): Buffer => (mode === '40000' ? Buffer.concat([name, SLASH]) : name);
