import { DEFAULT_PROJECT, ID_RULES, type IdRule, RESERVED_IDS, RESERVED_PROJECTS } from '../../src/redis/ids.ts';
import { KEY_NAMES, KEY_TABLE, type KeyRow, type Lifetime, spelling } from '../../src/redis/key-table.ts';

const ORIGINS: Record<KeyRow['from'], string> = {
  asset: 'asset registry',
  odyssey: 'Odyssey coordination',
  ade: 'ADE schema',
  additive: 'added by reeve',
};
const SLOTS: Record<Exclude<KeyRow['slot'], 'own'>, string> = {
  task: 'the task',
  resource: 'the resource',
  agent: 'the agent',
  user: 'the user',
  project: 'the project',
  asset: 'the namespace',
};
const PERIODS: readonly (readonly [number, string])[] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];

/** docs/keys.md: every key that reeve reads or writes in Redis, from the key table. */
export function keysPage(): string {
  const rows: readonly KeyRow[] = KEY_NAMES.map((name) => KEY_TABLE[name]);
  const rooms = [...Map.groupBy(rows, (row) => row.room)].map(([room, members]) => section(room, members));
  return [intro(), ...rooms, ids()].join('\n');
}

function intro(): string {
  return `# Keys in Redis

Written from \`src/redis/key-table/\` by \`npm run docs\`; edit the table, not this page.

Words in \`<angle brackets>\` stand for ids. \`${DEFAULT_PROJECT}\` is the name of the default project; another project has its own
name there, and its tasks are called \`PROJECT.TASK\` in \`ade:\` keys. The default set of assets lives under \`asset:\`, a
further one under \`asset:ns:NAMESPACE:\`.

In Cluster mode names carry hash tags (the braces are part of the key), so that all that belongs to one task, resource,
agent, user, project or namespace lies in one slot. Only then may one script change it in one step. A namespace's tag is
\`{asset}\` or \`{asset:NAMESPACE}\`.

Keys under \`${DEFAULT_PROJECT}:coord:\` are reeve's own: plain clients may read them and should not write them.
`;
}

function section(room: string, rows: readonly KeyRow[]): string {
  return [
    `## ${room[0]?.toUpperCase()}${room.slice(1)}`,
    '',
    '| key | in Cluster mode | type | lives | holds | from |',
    '|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${cells(row).join(' | ')} |`),
    '',
    ...rows.flatMap(fields),
  ].join('\n');
}

function cells(row: KeyRow): string[] {
  const inCluster = row.slot === 'own' ? 'the same' : `${code(spelling(row, 'cluster'))}, slot of ${SLOTS[row.slot]}`;
  return [code(row.pattern), inCluster, row.type, lives(row.ttl), row.holds, ORIGINS[row.from]];
}

function fields({ pattern, fields: named, type }: KeyRow): string[] {
  if (!named) return [];
  const lines = Object.entries(named).map(([field, meaning]) => `| \`${field}\` | ${meaning} |`);
  return [`| ${type === 'stream' ? 'entry' : 'field'} of ${code(pattern)} | |`, '|---|---|', ...lines, ''];
}

function ids(): string {
  const rules: readonly [string, IdRule][] = Object.entries(ID_RULES);
  const lines = rules.map(([kind, { says }]) => `| \`<${kind}>\` | ${says} |`);
  const list = (words: ReadonlySet<string>) =>
    [...words]
      .sort()
      .map((word) => `\`${word}\``)
      .join(' ');
  return `## Ids

| id | form |
|---|---|
${lines.join('\n')}

An approval request is called \`TASK.NUMBER\`; in Cluster mode its key is made of the two halves.

Reserved as ids: ${list(RESERVED_IDS)}

Reserved as names of projects: ${list(RESERVED_PROJECTS)}
`;
}

function lives(ttl: Lifetime): string {
  switch (ttl.kind) {
    case 'none':
      return 'for ever';
    case 'seconds':
      return `${period(ttl.seconds)}${ttl.renewed ? `, renewed ${ttl.renewed}` : ''}`;
    case 'until':
      return `until ${ttl.event}`;
    case 'with':
      return `as long as ${code(rowNamed(ttl.row).pattern)}`;
    case 'trimmed':
      return `newest ${ttl.entries} entries${ttl.seconds ? `, ${period(ttl.seconds)}` : ''}`;
  }
}

function rowNamed(name: string): KeyRow {
  const row = (KEY_TABLE as Readonly<Record<string, KeyRow>>)[name];
  if (!row) throw new Error(`a lifetime refers to ${name}, which is no row of the key table`);
  return row;
}

function period(seconds: number): string {
  const [size, unit] = PERIODS.find(([length]) => seconds % length === 0) ?? [1, 'second'];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const code = (pattern: string) => `\`${pattern.replace(/^(\{?)<project>(?=\}?:)/, `$1${DEFAULT_PROJECT}`)}\``;
