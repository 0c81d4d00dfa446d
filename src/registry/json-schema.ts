import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

export interface SchemaProblem {
  readonly path: readonly string[];
  readonly message: string;
}

const OPTIONS = { strict: false, logger: false, validateFormats: false } as const;

/** Checks that something is a JSON Schema: 2020-12 unless it says that it is draft 7 or older. It is never compiled here. */
export function createSchemaCheck(): (schema: Readonly<Record<string, unknown>>) => SchemaProblem | undefined {
  const newest = new Ajv2020(OPTIONS);
  const draft7 = new Ajv(OPTIONS);
  return (schema) => {
    const { $schema: dialect, ...rest } = schema;
    const ajv = typeof dialect === 'string' && /draft-0[4-7]/.test(dialect) ? draft7 : newest;
    if (ajv.validateSchema(rest) === true) return undefined;
    const [error] = ajv.errors ?? [];
    const path = (error?.instancePath ?? '').split('/').slice(1);
    return { path: path.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')), message: describe(error) };
  };
}

function describe(error: { message?: string; params?: Record<string, unknown> } | undefined): string {
  const allowed = error?.params?.allowedValues;
  return `${error?.message ?? 'is wrong'}${Array.isArray(allowed) ? `: ${allowed.join(', ')}` : ''}`;
}
