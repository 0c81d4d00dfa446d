import { listSettings, type Setting, settingsSchema } from '../../src/settings.ts';
import { code, codes, form, origin, plain, type Schema, table } from './markdown.ts';

/** docs/settings.md: every setting, and how each door names it. */
export function settingsPage(): string {
  const settings = listSettings();
  const sections = Map.groupBy(settings, ({ name }) => name.split('.').slice(0, -1).join('.'));
  return `# Settings

${origin('`src/settings.ts`')}

reeve needs no configuration: without any, it runs a private Redis, a SQLite file and the assets of this repository. A
setting may be given in four places. The first that names it wins:

1. a flag: \`reeve daemon --http-port 8080\`
2. a variable: \`REEVE_HTTP_PORT=8080\`, or a conventional one where there is one (\`REDIS_URL\`)
3. the file \`reeve.yaml\` in the working directory, or the one that \`--config\` or \`REEVE_CONFIG\` names
4. the default

\`\`\`yaml
# yaml-language-server: $schema=./reeve.schema.json
http:
  port: 8080
redis:
  url: redis://cache.example:6379
github:
  repo: acme/agent-assets
\`\`\`

- \`reeve config show --sources\` tells the value of every setting and where it came from, secrets hidden.
- \`reeve config schema > reeve.schema.json\` writes the schema by which editors complete and check the file.
- A name that nobody knows is an error, in the file and among \`REEVE_\` variables. An empty variable counts as not set.
- Relative paths start at the file that names them, otherwise at the working directory.
- Lists in variables and flags are separated by commas. \`yes\`, \`no\`, \`on\`, \`off\`, \`1\` and \`0\` are understood as well.
- Secrets may be kept in files: the variable of a secret with \`_FILE\` at its end, like \`GITHUB_TOKEN_FILE\`, names one.
- \`SIGHUP\` reads everything again. \`log.level\` changes at once, the rest with the next start.

${[...sections].map(([trail, members]) => section(trail, members)).join('\n\n')}
`;
}

function section(trail: string, settings: readonly Setting[]): string {
  const about = trail ? `${sectionText(trail)}.\n\n` : '';
  return `## ${trail || 'General'}\n\n${about}${table(
    ['setting', 'what it is', 'form', 'default', 'flag', 'variables'],
    settings.map(({ name, description, schema, flag, variables, secret }) => [
      code(name),
      `${description}${secret ? ' (secret)' : ''}`,
      form(schema as Schema),
      schema.default === undefined ? '' : code(plain(schema.default)),
      code(flag),
      codes(variables),
    ]),
  )}`;
}

function sectionText(trail: string): string {
  const node = trail.split('.').reduce<Schema | undefined>((at, key) => at?.properties?.[key], settingsSchema());
  return node?.description ?? '';
}
