import type { Asset } from './asset.ts';
import type { Problem } from './path-record.ts';

/** A file that looks like a manifest by its path. `sha` is its git blob SHA, which the source has verified. */
export interface ManifestFile {
  readonly path: string;
  readonly sha: string;
  readonly bytes: Uint8Array;
}

export type Parsed =
  | { readonly outcome: 'ok'; readonly asset: Asset; readonly warnings: readonly Problem[] }
  | ({ readonly outcome: 'bad' } & Problem)
  | { readonly outcome: 'skipped'; readonly reason: string };

/** Larger files are not even fetched: a listing knows the size. */
export const MAX_MANIFEST_BYTES = 512 * 1024;

/** Part of the config fingerprint: raise it when the same bytes would be read differently, and everything is read again. */
export const PARSER_VERSION = 1;

export declare function parseManifest(file: ManifestFile): Parsed;
