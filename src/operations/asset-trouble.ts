import { z } from 'zod';
import type { SourceHold } from '../registry/library.ts';
import { holdOutput, pathReport, sourceInput } from './asset-forms.ts';
import { defineOperation, type Operation } from './operation.ts';

/** What is wrong with files, and what waits for a person. */
export const assetTroubleOperations: readonly Operation[] = [
  defineOperation({
    name: 'assets.invalid',
    summary: 'List files that are bad, in conflict or held, and why; then warnings',
    description: 'A file that was good before keeps its last good version served.',
    access: 'read',
    input: z.object({
      source: sourceInput,
      status: z
        .enum(['bad', 'conflict', 'held', 'skipped', 'ok'])
        .optional()
        .describe('Only these; ok: good, but with warnings'),
    }),
    output: z.object({ items: z.array(pathReport) }),
    errors: ['NO_SUCH_SOURCE'],
    http: { method: 'GET', path: '/sync/errors' },
    cli: {
      words: 'asset invalid',
      view: 'asset-invalid',
      columns: ['status', 'path', 'problem'],
      examples: ['reeve asset invalid', 'reeve asset invalid --status conflict --json'],
    },
    run: async ({ rooms }, { source, status }) => {
      const reports = await rooms.library.reports(source);
      const wanted = reports
        .filter((report) => (status ? report.status === status : report.status !== 'skipped'))
        .sort((a, b) => Number(a.status === 'ok') - Number(b.status === 'ok'));
      return {
        items: wanted.map(({ path, source: from, status: is, id, since, problem, warnings, hold }) => ({
          path,
          source: from,
          status: is,
          ...(id && { id }),
          ...(since !== undefined && { since: isoOf(since) }),
          ...(problem && { problem }),
          ...(warnings && { warnings }),
          ...(hold && { hold }),
        })),
      };
    },
  }),
  defineOperation({
    name: 'assets.holds',
    summary: 'List changes that wait for a person',
    access: 'read',
    input: z.object({ source: sourceInput }),
    output: z.object({ items: z.array(holdOutput) }),
    errors: ['NO_SUCH_SOURCE'],
    http: { method: 'GET', path: '/sync/holds' },
    cli: {
      words: 'asset holds',
      columns: ['id', 'kind', 'since', 'says'],
      examples: ['reeve asset holds'],
    },
    run: async ({ rooms }, { source }) => ({ items: (await rooms.library.holds(source)).map(shownHold) }),
  }),
  defineOperation({
    name: 'assets.release',
    summary: 'Let a held change through',
    description: 'It is published by the sync that this starts. Another change to the same files is held anew.',
    access: 'decide',
    input: z.object({
      id: z.string().describe('Id of the hold'),
      reason: z.string().min(1).max(500).describe('Why it is all right'),
    }),
    output: holdOutput,
    errors: ['NO_SUCH_HOLD'],
    http: { method: 'POST', path: '/sync/holds/{id}/release' },
    cli: {
      words: 'asset release',
      args: ['id'],
      examples: ['reeve asset release mass-delete-3f2a91c0b4de --reason "the old tools are retired"'],
    },
    run: async ({ rooms, caller }, { id, reason }) => {
      const hold = await rooms.library.release(id, caller.id, reason);
      rooms.sync.ask(hold.source, { trigger: 'release' });
      return shownHold(hold);
    },
  }),
];

function shownHold({ id, kind, says, source, commit, since, paths, assets, released }: SourceHold) {
  return {
    id,
    kind,
    says,
    source,
    commit,
    since: isoOf(since),
    paths,
    assets,
    ...(released && { released: { ...released, at: isoOf(released.at) } }),
  };
}

const isoOf = (seconds: number): string => new Date(seconds * 1000).toISOString();
