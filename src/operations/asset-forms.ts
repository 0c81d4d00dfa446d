import { z } from 'zod';
import { CATEGORIES } from '../registry/category.ts';

/** Forms that several asset operations share. */

export const sourceInput = z.string().optional().describe('Only this source');

const problem = z.object({
  code: z.string(),
  message: z.string(),
  line: z.int().optional(),
  column: z.int().optional(),
  hint: z.string().optional(),
});

export const listOutput = z.object({
  items: z.array(
    z
      .object({
        id: z.string(),
        name: z.string(),
        category: z.enum(CATEGORIES),
        version: z.string(),
        description: z.string().describe('The first 100 characters'),
        source: z.string(),
      })
      .meta({ id: 'AssetSummary' }),
  ),
  next_cursor: z.string().optional(),
  total: z.int().describe('How many there are in all'),
  is_cut: z.boolean().optional().describe('The words are too common: there are more matches than were counted'),
});

export const assetOutput = z
  .object({
    id: z.string(),
    version: z.string(),
    category: z.enum(CATEGORIES),
    name: z.string(),
    description: z.string(),
    author: z.string().optional(),
    config_schema: z.array(z.looseObject({ name: z.string(), type: z.string() })),
    agent_specs: z.looseObject({}).optional(),
    runtime: z.looseObject({ language: z.string() }).optional(),
    permissions: z.union([z.array(z.string()), z.looseObject({})]),
    tags: z.array(z.string()),
    github_path: z.string(),
    github_sha: z.string().describe('Blob SHA of the manifest: pass it as If-Match when changing the asset'),
    created_at: z.int().describe('Unix seconds'),
    updated_at: z.int().describe('Unix seconds'),
    source: z.string(),
    uri: z.string(),
    stale: z
      .object({ status: z.string(), since: z.int().optional(), problem: problem.optional() })
      .optional()
      .describe('Its file is no longer good or is held; this is the last good version'),
  })
  .meta({ id: 'Asset' });

export const versionEntry = z
  .object({
    op: z.string(),
    at: z.string(),
    generation: z.int(),
    commit: z.string(),
    path: z.string(),
    version: z.string().optional(),
    sha: z.string().optional(),
    successor: z.string().optional(),
    author: z.string().optional(),
    same_version_other_bytes: z.boolean().describe('Other bytes were released under this version before'),
  })
  .meta({ id: 'AssetVersion' });

export const writtenOutput = z.object({
  id: z.string(),
  path: z.string(),
  commit: z.string().optional().describe('The new commit; none if nothing had to change'),
  github_sha: z.string().optional().describe('Blob SHA of the new manifest'),
  source: z.string(),
  held: z
    .object({ id: z.string(), says: z.string(), next: z.string() })
    .optional()
    .describe('The commit is made, but readers see the version before it until a person releases the change'),
});

export const pathReport = z
  .object({
    path: z.string(),
    source: z.string(),
    status: z.enum(['ok', 'bad', 'conflict', 'skipped', 'held']),
    id: z.string().optional().describe('The asset still served from it'),
    since: z.string().optional(),
    problem: problem.optional(),
    warnings: z.array(problem).optional(),
    hold: z.string().optional(),
  })
  .meta({ id: 'PathReport' });

export const holdOutput = z
  .object({
    id: z.string(),
    kind: z.enum(['mass-delete', 'permission-widening', 'history-rewrite']),
    says: z.string(),
    source: z.string(),
    commit: z.string(),
    since: z.string(),
    paths: z.array(z.string()),
    assets: z.array(z.string()),
    released: z.object({ by: z.string(), at: z.string(), reason: z.string() }).optional(),
  })
  .meta({ id: 'Hold' });
