/**
 * Where assets come from. A source answers four questions and knows nothing of Redis or manifests; whatever it answers
 * is pinned to one commit, so that a push in the middle of a sync cannot mix two of them.
 *
 * Failures are ReeveErrors with a SOURCE_… code: the code alone decides when to ask again (source-state.ts).
 */
export interface Source {
  readonly kind: 'github' | 'git' | 'directory';
  /** Where it is, for people; without secrets. */
  readonly address: string;
  /** Which commit is current. With `known` it may answer 'unchanged', which is the cheap question. */
  head(ask: HeadQuestion): Promise<Head>;
  /** Everything at a commit. Throws rather than leaves anything out: what is not listed counts as deleted. */
  list(commit: string, signal: AbortSignal): Promise<Listing>;
  /**
   * The contents of these entries, in any order, once per SHA, unverified: `verified()` does that for all sources.
   * An entry may be missing from the answer; the caller asks again or gives up, and never takes it for deleted.
   */
  read(commit: string, wanted: readonly Entry[], ask: ReadQuestion): AsyncIterable<Blob>;
  /**
   * Proves that a commit belongs to the source that was synced before, and says whether it descends from `previous`;
   * undefined where nobody can tell. Asked after read(), whose answer often holds this one, too.
   */
  confirm(commit: string, ask: ReadQuestion): Promise<{ readonly descends: boolean | undefined }>;
  /** Writes and deletes files as one commit on top of `expected`, or throws SOURCE_MOVED. */
  write(change: Change, signal: AbortSignal): Promise<Written>;
}

export interface HeadQuestion {
  /** The commit we have in full. */
  readonly known?: string | undefined;
  /** What the source called itself when it was first seen; another identity is refused with SOURCE_REPLACED. */
  readonly identity?: string | undefined;
  readonly signal: AbortSignal;
}

export type Head =
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'at'; readonly commit: string; readonly identity?: string | undefined };

export interface Entry {
  /** With forward slashes, relative to the root. */
  readonly path: string;
  /** 100644, 100755, 120000 (a symbolic link) or 160000 (a submodule). Folders are not listed. */
  readonly mode: string;
  readonly sha: string;
  readonly size: number;
}

export interface Listing {
  readonly commit: string;
  readonly entries: readonly Entry[];
}

export interface ReadQuestion {
  readonly identity?: string | undefined;
  /** The commit that was synced before. */
  readonly previous?: string | undefined;
  readonly signal: AbortSignal;
  /** Sum of all sizes in the listing, for a source that can also fetch everything at once. */
  readonly totalBytes?: number | undefined;
}

export interface Blob {
  readonly sha: string;
  readonly bytes: Uint8Array;
}

/** Files to write (bytes) or to delete (undefined), by path. */
export interface Change {
  readonly files: ReadonlyMap<string, Uint8Array | undefined>;
  /** The commit the change was made against. */
  readonly expected: string;
  readonly message: string;
  readonly author?: { readonly name: string; readonly email: string } | undefined;
}

export interface Written {
  readonly commit: string;
}

/** A source with what the settings say about it. */
export interface NamedSource {
  readonly name: string;
  /** Undefined is the one whose keys have the plain names. */
  readonly namespace: string | undefined;
  readonly source: Source;
  readonly include: readonly string[];
}
