import { hash } from 'node:crypto';
import type { AssetId } from '../redis/ids.ts';
import type { Category } from './category.ts';
import type { Manifest } from './manifest-schema.ts';

/** What a manifest says, and which file said so. */
export interface Asset extends Omit<Manifest, 'id'> {
  readonly id: AssetId;
  /** Path of the manifest in its source, with forward slashes. */
  readonly github_path: string;
  /** Git blob SHA of the manifest: the truth about its content. The version is only a label. */
  readonly github_sha: string;
}

/** An asset as Redis serves it. Times are Unix seconds. */
export interface StoredAsset extends Asset {
  readonly created_at: number;
  readonly updated_at: number;
}

/** What a list shows: the value of one field of asset:index. */
export interface Summary {
  readonly id: AssetId;
  readonly name: string;
  readonly category: Category;
  readonly version: string;
  readonly description: string;
}

const SUMMARY_POINTS = 100;

/** Cut by code point: half a surrogate pair is no character. */
export const summaryOf = ({ id, name, category, version, description }: Summary): Summary => ({
  id,
  name,
  category,
  version,
  description:
    description.length <= SUMMARY_POINTS ? description : Array.from(description).slice(0, SUMMARY_POINTS).join(''),
});

/** Fields of asset:metadata:ID. A part that the manifest does not have has no field. */
export function fieldsOf(asset: StoredAsset): Record<string, string> {
  const fields: Record<string, string> = {
    id: asset.id,
    version: asset.version,
    category: asset.category,
    name: asset.name,
    description: asset.description,
    config_schema: JSON.stringify(asset.config_schema),
  };
  if (asset.agent_specs) fields.agent_specs = JSON.stringify(asset.agent_specs);
  if (asset.runtime) fields.runtime = JSON.stringify(asset.runtime);
  if (asset.author !== undefined) fields.author = asset.author;
  fields.permissions = JSON.stringify(asset.permissions);
  fields.tags = JSON.stringify(asset.tags);
  fields.github_path = asset.github_path;
  fields.github_sha = asset.github_sha;
  fields.created_at = String(asset.created_at);
  fields.updated_at = String(asset.updated_at);
  return fields;
}

/** The reverse of fieldsOf(), for a hash that has passed the registry's digest or is shown as it is. */
export function assetOf(fields: Readonly<Record<string, string>>): StoredAsset {
  const json = (name: string) => (fields[name] === undefined ? undefined : JSON.parse(fields[name]));
  const { id = '', version = '', category = 'tool', name = '', description = '', author } = fields;
  const [agentSpecs, runtime] = [json('agent_specs'), json('runtime')];
  return {
    id: id as AssetId,
    version,
    category: category as Category,
    name,
    description,
    ...(author !== undefined && { author }),
    config_schema: json('config_schema') ?? [],
    ...(agentSpecs && { agent_specs: agentSpecs }),
    ...(runtime && { runtime }),
    permissions: json('permissions') ?? [],
    tags: json('tags') ?? [],
    github_path: fields.github_path ?? '',
    github_sha: fields.github_sha ?? '',
    created_at: Number(fields.created_at ?? 0),
    updated_at: Number(fields.updated_at ?? 0),
  };
}

/** Whether Redis would hold the same. */
export function sameContent(a: StoredAsset, b: StoredAsset): boolean {
  if (a.github_sha !== b.github_sha) return false;
  const [one, other] = [fieldsOf(a), fieldsOf(b)];
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

/** Git's name for the content of a file. */
export const blobSha = (bytes: Uint8Array): string =>
  hash('sha1', Buffer.concat([Buffer.from(`blob ${bytes.byteLength}\0`), bytes]));

/** Fingerprint of one hash in Redis, over every field it has: a field added by hand shows, too. */
export const digestOf = (fields: Readonly<Record<string, string>>): Digest => {
  const text = Object.keys(fields)
    .sort()
    .map((name) => `${name.length}:${name}${fields[name]?.length}:${fields[name]}`)
    .join('');
  return hash('sha256', text).slice(0, DIGEST_DIGITS);
};

/** 128 bits in hexadecimal. Digests add up, so that a total follows each change without reading the rest. */
export type Digest = string;
const DIGEST_DIGITS = 32;
const MODULUS = 1n << 128n;
export const NO_DIGEST: Digest = '0'.repeat(DIGEST_DIGITS);

/** The total after some digests came and some went. The order of neither matters. */
export function addDigests(total: Digest, come: Iterable<Digest>, gone: Iterable<Digest> = []): Digest {
  let sum = BigInt(`0x${total}`);
  for (const digest of come) sum += BigInt(`0x${digest}`);
  for (const digest of gone) sum -= BigInt(`0x${digest}`);
  return (((sum % MODULUS) + MODULUS) % MODULUS).toString(16).padStart(DIGEST_DIGITS, '0');
}
