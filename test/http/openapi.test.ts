import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ERRORS } from '../../src/error-catalogue.ts';
import { openApi } from '../../src/http/openapi.ts';
import { routePath } from '../../src/http/router.ts';
import { operations } from '../../src/operations/index.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { targetOf, theRooms } from '../support/rooms.ts';
import { anOpenDoor, echo } from './door.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
const rooms = () => theRooms(targetOf(redis.options));

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Entry>>;
  readonly components: { readonly schemas: Record<string, object> };
}
interface Entry {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
  readonly responses: Record<
    string,
    { readonly description: string; readonly content?: Record<string, { readonly schema: object }> }
  >;
}

/** Whether a body is of the form that the document gives for it. */
function fits({ components }: Document, schema: object, body: unknown): boolean {
  const whole = JSON.stringify({ ...schema, $defs: components.schemas }).replaceAll(
    '#/components/schemas/',
    '#/$defs/',
  );
  return z.fromJSONSchema(JSON.parse(whole)).safeParse(body).success;
}

describe('the OpenAPI document', () => {
  test('is valid 3.1, also with an operation that has a path, a query and a body', async () => {
    for (const offered of [operations, [...operations, echo]]) {
      const document = openApi(offered, '1.2.3');
      const result = await new Validator().validate(structuredClone(document));

      expect(result).toMatchObject({ valid: true });
      expect(document.openapi).toMatch(/^3\.1\./);
    }
  });

  test('tells of every operation, under the name and at the place where it is', () => {
    const document = openApi(operations, '1.2.3') as unknown as Document;
    for (const operation of operations) {
      const entry = document.paths[routePath(operation)]?.[operation.http.method.toLowerCase()];
      expect(entry?.operationId).toBe(operation.name);
      for (const code of operation.errors) {
        const refusal = entry?.responses[ERRORS[code].status];
        expect(refusal?.description).toContain(code);
        expect(refusal?.content).toHaveProperty(['application/problem+json']);
      }
    }
  });

  test('puts path, query and body each in its place', () => {
    const { paths } = openApi([echo], '1.2.3') as unknown as Document;
    const entry = paths['/api/v1/echo/{id}']!.post!;

    expect(entry.parameters.map(({ name, in: place }) => [name, place])).toEqual([['id', 'path']]);
    expect(entry.requestBody?.content['application/json']?.schema).toMatchObject({
      properties: { text: { type: 'string' }, times: { type: 'integer' } },
      additionalProperties: false,
    });
    expect(Object.keys(entry.responses)).toEqual(expect.arrayContaining(['200', '400', '413', '415', '503']));
  });

  test('says of readiness that 503 is an answer of its own form, or a problem', () => {
    const { paths } = openApi(operations, '1.2.3') as unknown as Document;

    expect(Object.keys(paths['/readyz']!.get!.responses['503']!.content!)).toEqual(
      expect.arrayContaining(['application/json', 'application/problem+json']),
    );
  });
});

describe('every route', () => {
  test('answers as the document says', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    await open.events.append('lock:expired', { lock: 'x' });
    const document = (await (await door.get('/api/v1/openapi.json')).json()) as Document;
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, entry] of Object.entries(methods)) {
        const response = await door.get(path, { method: method.toUpperCase() });
        const told = entry.responses[response.status]?.content?.['application/json']?.schema;
        expect([path, response.status, told !== undefined]).toEqual([path, 200, true]);
        expect([path, fits(document, told!, await response.json())]).toEqual([path, true]);
      }
    }
  });

  test('refuses as the document says', async () => {
    const door = await anOpenDoor(await rooms());
    const document = (await (await door.get('/api/v1/openapi.json')).json()) as Document;
    for (const [path, { get }] of Object.entries(document.paths)) {
      const response = await door.get(`${path}?no_such_input=1`);
      const told = get!.responses[response.status]?.content?.['application/problem+json']?.schema;
      expect([path, response.status, fits(document, told!, await response.json())]).toEqual([path, 400, true]);
    }
  });

  test('gives the very answer that its operation declares', async () => {
    const door = await anOpenDoor(await rooms());
    for (const operation of operations) {
      const response = await door.get(routePath(operation));
      const body: unknown = await response.json();
      expect(operation.output.safeParse(body)).toMatchObject({ success: true, data: body });
    }
  });
});

describe('the pages for people', () => {
  test('load with all they need from here, and from nowhere else', async () => {
    const door = await anOpenDoor(await rooms());
    const first = await door.get('/');
    expect(new URL(first.url).pathname).toBe('/docs');
    const page = await first.text();
    const needed = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => new URL(link!, `${door.url}/docs/`));
    expect(needed.length).toBeGreaterThan(3);
    for (const { origin, pathname } of needed) {
      expect(origin).toBe(door.url);
      const asset = await door.get(pathname);
      expect([pathname, asset.status]).toEqual([pathname, 200]);
    }
    // Else the interface would send the document to a validator elsewhere.
    const initializer = needed.find(({ pathname }) => pathname.endsWith('initializer.js'));
    expect(await (await door.get(initializer!.pathname)).text()).toContain('validatorUrl: null');
    expect(first.headers.get('content-security-policy')).toContain("default-src 'self'");
    const document = (await (await door.get('/docs/json')).json()) as Document;
    expect(Object.keys(document.paths)).toContain('/api/v1/status');
  });
});
