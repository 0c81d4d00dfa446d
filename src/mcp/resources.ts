import { type McpServer, ResourceNotFoundError, ResourceTemplate, type Variables } from '@modelcontextprotocol/server';
import { asReeveError, toProblem } from '../errors.ts';
import type { Operation } from '../operations/operation.ts';
import type { Ask } from './ask.ts';

/** What a client may read by its address: the answer of an operation, as it is. */
interface Readable {
  readonly name: string;
  /** With a name in braces it stands for many. */
  readonly uri: string;
  readonly description: string;
  readonly operation: string;
  readonly asks: (parts: Parts) => object;
  /** Where the ids come from that a client may complete what was typed with. */
  readonly ids?: { readonly operation: string; readonly asks: (typed: string) => object; readonly field: string };
}
type Parts = Readonly<Record<string, string>> & { readonly who: string };

const MOST_IDS = 50;
const TASK_IDS = {
  operation: 'task.list',
  asks: (typed: string) => ({ limit: MOST_IDS, ...(typed && { text: typed }) }),
  field: 'task_id',
};
const ASSET_IDS = { operation: 'assets.list', asks: () => ({ limit: MOST_IDS }), field: 'id' };

export const RESOURCES: readonly Readable[] = [
  {
    name: 'overview',
    uri: 'reeve://overview',
    description: 'Who you are, the work in numbers, what is yours, the rules',
    operation: 'system.briefing',
    asks: ({ who }) => ({ agent: who }),
  },
  {
    name: 'task',
    uri: 'reeve://task/{task}',
    description: 'A task: where it stands, what it needs, what holds it',
    operation: 'task.show',
    asks: ({ task }) => ({ task }),
    ids: TASK_IDS,
  },
  {
    name: 'task-events',
    uri: 'reeve://task/{task}/events',
    description: 'What happened to a task, newest first, as the audit has it',
    operation: 'audit.list',
    asks: ({ task }) => ({ task }),
    ids: TASK_IDS,
  },
  {
    name: 'task-result',
    uri: 'reeve://task/{task}/result',
    description: 'How the last attempt at a task went',
    operation: 'task.execution',
    asks: ({ task }) => ({ task }),
    ids: TASK_IDS,
  },
  { name: 'locks', uri: 'reeve://locks', description: 'Who holds what', operation: 'lock.list', asks: () => ({}) },
  {
    name: 'agents',
    uri: 'reeve://agents',
    description: 'Who does what since when',
    operation: 'agent.list',
    asks: () => ({}),
  },
  {
    name: 'approvals-pending',
    uri: 'reeve://approvals/pending',
    description: 'What people are asked, in the order in which it is due',
    operation: 'approval.list',
    asks: () => ({ all: true }),
  },
  {
    name: 'sync',
    uri: 'reeve://sync',
    description: 'How the assets and their sources stand',
    operation: 'sync.status',
    asks: () => ({}),
  },
  {
    name: 'asset',
    uri: 'asset://{category}/{id}',
    description: 'The manifest of an asset, with its commit',
    operation: 'assets.get',
    asks: ({ id }) => ({ id }),
    ids: ASSET_IDS,
  },
  {
    name: 'asset-version',
    uri: 'asset://{category}/{id}@{version}',
    description: 'The manifest of an asset as it was in a version',
    operation: 'assets.get',
    asks: ({ id, version }) => ({ id, version }),
    ids: ASSET_IDS,
  },
];

export interface ResourceOptions {
  readonly operations: readonly Operation[];
  readonly who: string;
  readonly ask: Ask;
}

/** Everything that can be read by its address; of the operations that this server has. */
export function registerResources(server: McpServer, options: ResourceOptions): void {
  for (const readable of RESOURCES) {
    const { name, uri, description } = readable;
    const operation = named(options, readable.operation);
    if (!operation) continue;
    const about = { title: name, description, mimeType: 'application/json' };
    const read = (at: URL, parts: Variables, signal: AbortSignal) =>
      answerAt(readable, operation, options, { at, parts, signal });
    if (!uri.includes('{')) {
      server.registerResource(name, uri, about, (at, { mcpReq }) => read(at, {}, mcpReq.signal));
      continue;
    }
    const template = new ResourceTemplate(uri, { list: undefined, complete: completion(readable, options) });
    server.registerResource(name, template, about, (at, parts, { mcpReq }) => read(at, parts, mcpReq.signal));
  }
}

interface Asked {
  readonly at: URL;
  readonly parts: Variables;
  readonly signal: AbortSignal;
}

async function answerAt(
  { asks }: Readable,
  operation: Operation,
  { who, ask }: ResourceOptions,
  { at, parts, signal }: Asked,
) {
  const texts = Object.entries(parts).map(([part, value]) => [part, decodeURIComponent(String(value))]);
  try {
    const answer = await ask(operation, asks({ ...Object.fromEntries(texts), who }), signal);
    return { contents: [{ uri: at.href, mimeType: 'application/json', text: JSON.stringify(answer) }] };
  } catch (error) {
    const problem = toProblem(asReeveError(error));
    if (problem.status === 404) throw new ResourceNotFoundError(at.href);
    throw new Error(`${problem.code}: ${problem.detail} ${problem.next ?? ''}`.trim(), { cause: error });
  }
}

function completion({ ids, uri }: Readable, options: ResourceOptions) {
  const source = ids && named(options, ids.operation);
  const part = uri.includes('{task}') ? 'task' : 'id';
  const found = async (typed: string): Promise<string[]> => {
    if (!ids || !source) return [];
    const { items } = (await options.ask(source, ids.asks(typed), AbortSignal.timeout(COMPLETION_MS))) as Page;
    return items
      .map((item) => item[ids.field] as string)
      .filter((id) => id.toLowerCase().startsWith(typed.toLowerCase()));
  };
  return {
    [part]: found,
    ...(part === 'id' && { category: (typed: string) => CATEGORIES.filter((one) => one.startsWith(typed)) }),
  };
}
const COMPLETION_MS = 5_000;
const CATEGORIES = ['tool', 'prompt', 'skill'];

interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

const named = ({ operations }: ResourceOptions, name: string): Operation | undefined =>
  operations.find((operation) => operation.name === name);
