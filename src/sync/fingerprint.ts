import { hash } from 'node:crypto';
import type { Guards } from '../registry/guards.ts';
import { PARSER_VERSION } from '../registry/manifest.ts';

export interface Fingerprinted {
  readonly address: string;
  readonly include: readonly string[];
  readonly guards: Guards;
}

/** What a published registry depends on besides the commit. When it differs, everything is read again, from the cache. */
export const configFingerprint = ({ address, include, guards }: Fingerprinted): string =>
  hash('sha256', JSON.stringify([PARSER_VERSION, address, [...include].sort(), guards])).slice(0, 16);
