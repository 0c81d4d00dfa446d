import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import { ReeveError } from '../errors.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import type { Operation } from '../operations/operation.ts';

/** Asks an operation by its name. */
export type AskFor = (operation: string, input: Values, signal: AbortSignal) => Promise<unknown>;

type Values = Readonly<Record<string, unknown>>;

/** What can be read at a place that is always there: the answer of an operation. */
interface Place {
  readonly name: string;
  readonly uri: string;
  readonly says: string;
  readonly operation: string;
  readonly input?: Values;
  /** Streams whose events may change it. */
  readonly changedBy: readonly ReeveEvent['stream'][];
}

const PLACES: readonly Place[] = [
  {
    name: 'overview',
    uri: 'reeve://overview',
    says: 'Who you are here, the project in numbers, what you have a lease on, and what to do next',
    operation: 'system.briefing',
    changedBy: ['task', 'work'],
  },
  { name: 'locks', uri: 'reeve://locks', says: 'Locks that are held', operation: 'lock.list', changedBy: ['lock'] },
  {
    name: 'agents',
    uri: 'reeve://agents',
    says: 'Agents, and what they do',
    operation: 'agent.list',
    changedBy: ['work'],
  },
  {
    name: 'approvals',
    uri: 'reeve://approvals/pending',
    says: 'What waits for an answer, in the order in which it is due',
    operation: 'approval.list',
    input: { all: true },
    changedBy: ['approval'],
  },
  {
    name: 'sync',
    uri: 'reeve://sync',
    says: 'How the sources of assets are',
    operation: 'sync.status',
    changedBy: ['sync', 'system'],
  },
];

/** One of many of a kind. What a model cannot list it finds with a tool. */
interface Kind {
  readonly name: string;
  readonly template: string;
  readonly says: string;
  readonly operation: string;
  readonly input: (id: string) => Values;
}

const OF_A_TASK: readonly Kind[] = [
  {
    name: 'task',
    template: 'reeve://task/{id}',
    says: 'A task: what it is, where it stands and why',
    operation: 'task.show',
    input: (task) => ({ task }),
  },
  {
    name: 'task events',
    template: 'reeve://task/{id}/events',
    says: 'What happened to a task, from the audit log',
    operation: 'audit.list',
    input: (task) => ({ task }),
  },
  {
    name: 'task result',
    template: 'reeve://task/{id}/result',
    says: 'How the last attempt at a task went',
    operation: 'task.execution',
    input: (task) => ({ task }),
  },
];
const ASSET: Kind = {
  name: 'asset',
  template: 'asset://{category}/{id}',
  says: 'A manifest; asset://CATEGORY/ID@VERSION as it was in that version. Its text is data from a repository',
  operation: 'assets.get',
  input: (name) => {
    const [id, version] = name.split('@');
    return { id, ...(version && { version }) };
  },
};

const JSON_TYPE = { mimeType: 'application/json' } as const;
/** Most of what is shown as a completion, or in a list. */
const MOST = 100;

/** Registers what can be read. Each is the answer of an operation, with the rights of whoever reads. */
export function registerResources(server: McpServer, operations: readonly Operation[], ask: AskFor): void {
  const isOffered = ({ operation }: { readonly operation: string }) =>
    operations.some(({ name }) => name === operation);
  const read = async (uri: URL, { operation, input }: Asked, signal: AbortSignal) => {
    const answer = await ask(operation, input, signal).catch((error: unknown) => {
      throw error instanceof ReeveError && MISSING.includes(error.code) ? new ResourceNotFoundError(uri.href) : error;
    });
    return { contents: [{ uri: uri.href, ...JSON_TYPE, text: JSON.stringify(answer) }] };
  };
  for (const place of PLACES.filter(isOffered)) {
    const { name, uri, says, operation, input = {} } = place;
    server.registerResource(name, uri, { title: name, description: says, ...JSON_TYPE }, (at, { mcpReq }) =>
      read(at, { operation, input }, mcpReq.signal),
    );
  }
  const never = new AbortController().signal;
  const taskIds = async (text: string) => {
    const found = (await ask('task.list', { text, limit: MOST }, never)) as { items: { task_id: string }[] };
    return found.items.map(({ task_id }) => task_id).filter((id) => id.startsWith(text));
  };
  for (const kind of OF_A_TASK.filter(isOffered)) {
    const template = new ResourceTemplate(kind.template, { list: undefined, complete: { id: taskIds } });
    server.registerResource(kind.name, template, { description: kind.says, ...JSON_TYPE }, (at, { id }, { mcpReq }) =>
      read(at, { operation: kind.operation, input: kind.input(String(id)) }, mcpReq.signal),
    );
  }
  if (!isOffered(ASSET)) return;
  const assets = async (category?: string, signal: AbortSignal = never) => {
    const found = (await ask('assets.list', { limit: MOST, ...(category && { category }) }, signal)) as Assets;
    return found.items;
  };
  const template = new ResourceTemplate(ASSET.template, {
    list: async ({ mcpReq }) => ({
      resources: (await assets(undefined, mcpReq.signal)).map(({ id, category, name, description }) => ({
        uri: `asset://${category}/${id}`,
        name: id,
        title: name,
        description,
        ...JSON_TYPE,
      })),
    }),
    complete: {
      category: (text) => ['tool', 'prompt', 'skill'].filter((one) => one.startsWith(text)),
      id: async (text, context) =>
        (await assets(context?.arguments?.category)).map(({ id }) => id).filter((id) => id.startsWith(text)),
    },
  });
  server.registerResource(
    'asset',
    template,
    { description: ASSET.says, ...JSON_TYPE },
    async (at, found, { mcpReq }) => {
      const { category, id } = found as { category: string; id: string };
      const asked = { operation: ASSET.operation, input: ASSET.input(id) };
      const answer = await read(at, asked, mcpReq.signal);
      const { category: real } = JSON.parse(answer.contents[0]!.text) as { category: string };
      if (real !== category) throw new ResourceNotFoundError(at.href);
      return answer;
    },
  );
}

interface Asked {
  readonly operation: string;
  readonly input: Values;
}
interface Assets {
  readonly items: readonly { id: string; category: string; name: string; description: string }[];
}

const MISSING: readonly string[] = ['TASK_UNKNOWN', 'NO_SUCH_ASSET', 'NO_SUCH_VERSION'];

/** Which resources an event makes old. */
export function changedBy({ stream, payload }: Pick<ReeveEvent, 'stream' | 'payload'>): string[] {
  const places = PLACES.filter((place) => place.changedBy.includes(stream)).map(({ uri }) => uri);
  const { task_id: task } = payload;
  return typeof task === 'string'
    ? [...places, ...OF_A_TASK.map(({ template }) => template.replace('{id}', task))]
    : places;
}
