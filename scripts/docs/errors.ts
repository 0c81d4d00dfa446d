import { ERRORS, type ErrorCode, type ErrorRow, EXIT } from '../../src/error-catalogue.ts';
import { ReeveError, toProblem } from '../../src/errors.ts';
import { operations } from '../../src/operations/index.ts';
import { code, link, origin, table } from './markdown.ts';

const ACTORS: Record<ErrorRow['actor'], string> = {
  caller: 'The caller: the call itself must change.',
  retry: 'Nobody: the same call may be repeated, a little later.',
  wait: 'Nobody: it clears by itself.',
  human: 'A person must put something right.',
};

const EXITS: Record<keyof typeof EXIT, string> = {
  ok: 'done',
  failed: 'it was tried and failed; for `reeve doctor`: something is not well',
  usage: 'the command or the configuration is wrong; nothing was tried',
  notFound: 'what was asked for does not exist',
  denied: 'not allowed',
  conflict: 'something else is in the way: a name, a port, a directory',
  held: 'somebody else holds it',
  nothing: 'there is nothing to give out',
  unavailable: 'the daemon, Redis or the database does not answer; try again',
  timeout: 'waited as long as asked, in vain',
  differs: 'two things that were compared differ',
  interrupted: 'Ctrl-C',
};

/** docs/errors.md: every failure that reeve foresees. */
export function errorsPage(): string {
  const rows = Object.entries(ERRORS) as [ErrorCode, ErrorRow][];
  return `# Errors

${origin('`src/error-catalogue.ts`')}

Every failure has a code. The code is stable: scripts and agents may rely on it, and the wording may improve. All doors
tell the same story: HTTP answers with an RFC 9457 problem (\`application/problem+json\`), \`reeve COMMAND --json\` prints
the same object as \`{"error": …}\`, an MCP tool returns \`code\`, \`why\` and \`fix\`.

${exampleProblem()}

## Who must act

${table(['actor', ''], Object.entries(ACTORS))}

## Exit codes

${table(
  ['exit', 'meaning'],
  Object.entries(EXIT).map(([name, value]) => [String(value), EXITS[name as keyof typeof EXIT]]),
)}

## All errors

${table(
  ['code', 'title', 'HTTP', 'exit', 'actor'],
  rows.map(([name, { title, status, exit, actor }]) => [link(name), title, String(status), String(exit), actor]),
)}

${rows.map(([name, row]) => section(name, row)).join('\n\n')}
`;
}

function exampleProblem(): string {
  const error = new ReeveError('REDIS_UNAVAILABLE', { address: '127.0.0.1:6379', problem: 'connection refused' });
  return `\`\`\`json\n${JSON.stringify(toProblem(error), undefined, 2)}\n\`\`\``;
}

function section(name: ErrorCode, { title, status, exit, actor, says, next }: ErrorRow): string {
  const told = operations.filter(({ errors }) => errors.includes(name)).map((one) => link(one.name, 'operations.md'));
  return [
    `### ${name}`,
    '',
    `${title}. HTTP ${status}, exit ${exit}; ${ACTORS[actor].replace(/^./, (letter) => letter.toLowerCase())}`,
    '',
    `- says: ${code(says.replaceAll('\n', ' '))}`,
    `- next: ${code(next)}`,
    ...(told.length > 0 ? [`- told by ${told.join(', ')}`] : []),
  ].join('\n');
}
