/** The little of JSON Schema that says how to read a text: environment, flags and query strings have nothing but text. */
export interface TextSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: TextSchema | boolean;
  readonly anyOf?: readonly TextSchema[];
}

const TRUE = new Set(['true', '1', 'yes', 'on']);
const FALSE = new Set(['false', '0', 'no', 'off']);

/**
 * Reads a text as what the schema wants. A text that does not fit is returned as it is, so that the schema's own
 * validation names the problem: this only translates, it never judges.
 */
export function fromText(schema: TextSchema, text: string): unknown {
  const types = typesOf(schema);
  if (types.has('boolean')) {
    const word = text.toLowerCase();
    if (TRUE.has(word)) return true;
    if (FALSE.has(word)) return false;
  }
  if ((types.has('number') || types.has('integer')) && text.trim() !== '' && Number.isFinite(Number(text))) {
    return Number(text);
  }
  if (types.has('array')) {
    const item = itemSchema(schema);
    return listOf(text).map((part) => (typeof part === 'string' ? fromText(item, part) : part));
  }
  if (types.has('object')) return jsonOr(text, pairsOr(text, text));
  return text;
}

/** Either a JSON array or words separated by commas. */
function listOf(text: string): unknown[] {
  const parsed = text.trimStart().startsWith('[') ? jsonOr(text, undefined) : undefined;
  if (Array.isArray(parsed)) return parsed;
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function typesOf(schema: TextSchema): ReadonlySet<string> {
  const own = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  return new Set([...own, ...(schema.anyOf ?? []).flatMap((option) => [...typesOf(option)])]);
}

function itemSchema(schema: TextSchema): TextSchema {
  if (typeof schema.items === 'object') return schema.items;
  return schema.anyOf?.map(itemSchema).find((option) => option.type !== undefined) ?? {};
}

function jsonOr<T>(text: string, otherwise: T): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return otherwise;
  }
}

/** Lines of NAME=VALUE, as a person types an object. A number stays text: 1.10 is a version, too. */
function pairsOr<T>(text: string, otherwise: T): Record<string, unknown> | T {
  const pairs = text.split('\n').map((line) => /^([A-Za-z_][\w-]*)=(.*)$/.exec(line));
  if (!pairs.every((pair) => pair !== null)) return otherwise;
  return Object.fromEntries(
    pairs.map(([, name = '', value = '']) => [name, isNumber(value) ? value : jsonOr(value, value)]),
  );
}

const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));
