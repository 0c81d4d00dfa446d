import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../error-catalogue.ts';
import type { Operation } from '../operations/operation.ts';
import { SESSION_COOKIE } from './auth.ts';
import { routePath } from './router.ts';

type Json = Record<string, unknown>;

/** What any call may answer, whatever it asks for. */
const ALWAYS: readonly ErrorCode[] = [
  'INVALID_INPUT',
  'DENIED',
  'UNAUTHENTICATED',
  'REDIS_UNAVAILABLE',
  'REDIS_REPLY_UNKNOWN',
  'SHUTTING_DOWN',
  'INTERNAL',
];
const LIMITED: readonly ErrorCode[] = ['RATE_LIMITED'];
const OF_A_BODY: readonly ErrorCode[] = ['USAGE', 'BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

/** The OpenAPI 3.1 document, from the table of operations and nothing else. */
export function openApi(operations: readonly Operation[], version: string): Json {
  const schemas: Json = { Problem: PROBLEM };
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = routePath(operation);
    const entry = paths[path] ?? {};
    paths[path] = entry;
    entry[operation.http.method.toLowerCase()] = describe(operation, schemas);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'reeve',
      version,
      description:
        'Assets, tasks, locks and approvals for a fleet of AI agents. Errors are RFC 9457 problems with a stable code.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: [...new Set(operations.map(tagOf))].map((name) => ({ name })),
    paths,
    components: { schemas, securitySchemes: SECURITY_SCHEMES },
    security: [{ token: [] }, { session: [] }],
  };
}

function describe(operation: Operation, schemas: Json): Json {
  const { name, summary, description, http, input, output, errors, access } = operation;
  const { properties = {}, required = [] } = schemaOf(input, 'input', schemas) as {
    properties?: Json;
    required?: string[];
  };
  const inPath = [...http.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  const hasBody = http.method !== 'GET' && http.method !== 'DELETE';
  const rest = Object.keys(properties).filter((property) => !inPath.includes(property));
  const parameter = (property: string, place: 'path' | 'query') => ({
    name: property,
    in: place,
    required: place === 'path' || required.includes(property),
    ...((properties[property] as Json).description !== undefined && {
      description: (properties[property] as Json).description,
    }),
    ...((properties[property] as Json).type === 'array' && { style: 'form', explode: false }),
    schema: properties[property],
  });
  const body = {
    type: 'object',
    properties: Object.fromEntries(rest.map((property) => [property, properties[property]])),
    required: required.filter((property) => rest.includes(property)),
    additionalProperties: false,
  };
  return {
    operationId: name,
    summary,
    ...(description && { description }),
    tags: [tagOf(operation)],
    'x-access': access,
    ...(access === 'open' && { security: [] }),
    parameters: [
      ...inPath.map((property) => parameter(property, 'path')),
      ...Object.entries(http.headers ?? {}).map(([header, property]) => ({
        name: header,
        in: 'header',
        required: false,
        schema: properties[property],
      })),
      ...(hasBody ? [] : rest.map((property) => parameter(property, 'query'))),
    ],
    ...(hasBody &&
      rest.length > 0 && {
        requestBody: { required: body.required.length > 0, content: { 'application/json': { schema: body } } },
      }),
    responses: merged(
      success(operation, schemaOf(output, 'output', schemas)),
      problems([...errors, ...(operation.limit ? LIMITED : []), ...ALWAYS, ...(hasBody ? OF_A_BODY : [])]),
    ),
  };
}

type Responses = Record<string, { description: string; content?: Json }>;

/** One status may carry an answer or a problem: /readyz says 503 in its own form, and as a problem while shutting down. */
const merged = (answers: Responses, refusals: Responses): Responses => ({
  ...refusals,
  ...Object.fromEntries(
    Object.entries(answers).map(([status, { description, content }]) => {
      const refusal = refusals[status];
      return [
        status,
        {
          description: [description, refusal?.description].filter(Boolean).join('. '),
          ...((content || refusal) && { content: { ...content, ...refusal?.content } }),
        },
      ];
    }),
  ),
});

function success({ http, follow }: Operation, schema: Json): Responses {
  const content = {
    'application/json': { schema },
    ...(follow && { 'text/event-stream': { schema: { type: 'string' } } }),
  };
  return Object.fromEntries(
    Object.entries(http.answers ?? { 200: 'Done' }).map(([status, description]) => [
      status,
      { description, ...(status !== '204' && { content }) },
    ]),
  );
}

function problems(codes: readonly ErrorCode[]): Responses {
  const byStatus = Map.groupBy([...new Set(codes)], (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, members]) => [
      status,
      {
        description: members.map((code) => `${code}: ${ERRORS[code].title}`).join('. '),
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

/** zod names shared schemas in $defs; OpenAPI keeps them in one place for all. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const { $schema: _dialect, $defs = {}, ...own } = hoisted(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  Object.assign(schemas, $defs);
  return own;
}

const hoisted = (schema: unknown): Json & { $defs?: Json } =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json & { $defs?: Json };

/** Until the first token is made, callers on the daemon's own machine need neither. */
const SECURITY_SCHEMES: Json = {
  token: { type: 'http', scheme: 'bearer', description: 'An API token: reeve token create' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description: 'A browser session: POST /api/v1/sessions',
  },
};

const tagOf = ({ name }: Operation): string => name.split('.')[0] as string;

const PROBLEM: Json = {
  type: 'object',
  description: 'RFC 9457 problem',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', enum: Object.keys(ERRORS), description: 'Stable: what callers may rely on' },
    detail: { type: 'string', description: 'What happened, to what' },
    next: { type: 'string', description: 'What to do next' },
    actor: {
      type: 'string',
      enum: ['caller', 'retry', 'wait', 'human'],
      description: 'Who must act before it can work',
    },
    details: { type: 'object' },
    retry_after_seconds: { type: 'number' },
  },
  required: ['type', 'title', 'status', 'code', 'detail', 'next', 'actor'],
};
