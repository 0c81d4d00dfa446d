import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';

/** GitHub's own published description of its REST interface: what the stand-in must keep to. */
export interface Description {
  /** Throws when an answer is none that GitHub could give at this route. */
  check(method: string, template: string, status: number, contentType: string | undefined, body: unknown): void;
  /** The example that GitHub publishes for an answer: a whole object of which a test changes what it cares about. */
  example(name: string): Record<string, unknown>;
}

interface Document {
  readonly paths: Record<string, Record<string, { responses: Record<string, Reference & Answer> }>>;
  readonly components: {
    readonly responses: Record<string, Answer>;
    readonly examples: Record<string, { value: Record<string, unknown> }>;
  };
}
interface Reference {
  readonly $ref?: string;
}
interface Answer {
  readonly content?: Record<string, { schema?: object }>;
}

/** Read once for all: it is large. */
let once: Description | undefined;
export function githubDescription(): Description {
  once ??= readDescription();
  return once;
}

function readDescription(): Description {
  const file = new URL('../../node_modules/@octokit/openapi/generated/api.github.com.json', import.meta.url);
  const document = JSON.parse(readFileSync(file, 'utf8')) as Document;
  const ajv = new Ajv({ strict: false, allErrors: false, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'github');
  const validators = new Map<string, ValidateFunction>();

  function answerOf(method: string, template: string, status: number): { answer: Answer; pointer: string } | undefined {
    const responses = document.paths[template]?.[method.toLowerCase()]?.responses;
    if (!responses) throw new Error(`GitHub has no ${method} ${template}`);
    const found = responses[String(status)];
    if (!found) return undefined;
    if (found.$ref) {
      const name = found.$ref.split('/').at(-1)!;
      return { answer: document.components.responses[name]!, pointer: `/components/responses/${name}` };
    }
    const escaped = template.replaceAll('~', '~0').replaceAll('/', '~1');
    return { answer: found, pointer: `/paths/${escaped}/${method.toLowerCase()}/responses/${status}` };
  }

  return {
    example: (name) => structuredClone(document.components.examples[name]!.value),
    check(method, template, status, contentType, body) {
      const found = answerOf(method, template, status);
      // Limits and outages may be the answer to anything, and are not written down for each route.
      if (!found) {
        if ([304, 401, 403, 429].includes(status) || status >= 500) return;
        throw new Error(`${method} ${template} never answers ${status}`);
      }
      const media = contentType?.split(';')[0] ?? '';
      if (!found.answer.content?.[media]?.schema || media !== 'application/json') return;
      const at = encodeURI(`github#${found.pointer}/content/${media.replace('/', '~1')}/schema`);
      const validate = validators.get(at) ?? ajv.compile({ $ref: at });
      validators.set(at, validate);
      if (!validate(body)) throw new Error(`${method} ${template} ${status}: ${ajv.errorsText(validate.errors)}`);
    },
  };
}
