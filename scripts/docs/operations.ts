import { z } from 'zod';
import { routePath } from '../../src/http/router.ts';
import { operations } from '../../src/operations/index.ts';
import { ACCESS, type Operation } from '../../src/operations/operation.ts';
import { code, form, link, origin, plain, type Schema, table } from './markdown.ts';

/** docs/operations.md: everything one can ask of the daemon, and what it is called at each door. */
export function operationsPage(): string {
  return `# Operations

${origin('`src/operations/`')}

An operation is one thing that can be asked of the daemon. It is served over HTTP, as a command and, where agents need
it, as an MCP tool: with the same input, the same answer, the same rights and the same [errors](errors.md). The HTTP
side is described for machines in \`schemas/openapi.json\`, which a running daemon serves at \`/api/v1/openapi.json\`, and
for people at \`/docs\`. Tools are served at \`/mcp\` and by \`reeve mcp\`. \`reeve schema COMMAND\` prints the JSON Schema of
what an operation takes and answers.

${table(
  ['operation', 'HTTP', 'command', 'MCP tool', 'right'],
  operations.map((one) => [
    link(one.name),
    code(route(one)),
    code(command(one)),
    one.mcp ? code(one.mcp.tool) : '',
    one.access,
  ]),
)}

## Rights

${table(
  ['right', 'allows'],
  Object.entries(ACCESS).map(([name, says]) => [name, says]),
)}

${operations.map(section).join('\n\n')}

## Types

What several answers are made of.

${types().join('\n\n')}
`;
}

function section(operation: Operation): string {
  const { name, summary, description, input, output, errors, access, mcp, follow } = operation;
  const taken = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema;
  const given = answerOf(output);
  const doors = [code(route(operation)), code(command(operation)), ...(mcp ? [`tool ${code(mcp.tool)}`] : [])];
  return [
    `## ${name}`,
    `${summary}.${description ? ` ${description}` : ''}`,
    `${doors.join(' · ')} · right: ${access}`,
    ...(Object.keys(taken.properties ?? {}).length > 0 ? [`Takes:\n\n${fields(taken)}`] : []),
    `Answers${follow ? ', once or for as long as one listens' : ''}:\n\n${fields(given)}`,
    ...(errors.length > 0 ? [`Errors: ${errors.map((one) => link(one, 'errors.md')).join(', ')}`] : []),
  ].join('\n\n');
}

function types(): string[] {
  const named = Object.assign({}, ...operations.map(({ output }) => answerOf(output).$defs)) as Record<string, Schema>;
  return Object.entries(named)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, schema]) => `### ${name}\n\n${fields(schema)}`);
}

const answerOf = (output: z.ZodType): Schema =>
  z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' }) as Schema;

function fields({ properties = {}, required = [] }: Schema): string {
  return table(
    ['field', 'form', ''],
    Object.entries(properties).map(([name, schema]) => [code(name), form(schema), notes(name, schema, required)]),
  );
}

function notes(name: string, { description, default: usual }: Schema, required: readonly string[]): string {
  const presence = usual === undefined ? (required.includes(name) ? '' : 'optional') : `default ${code(plain(usual))}`;
  return [description ?? '', presence && `(${presence})`].filter(Boolean).join(' ');
}

const route = (operation: Operation): string => `${operation.http.method} ${routePath(operation)}`;
const command = ({ cli }: Operation): string => `reeve ${cli.words}`;
