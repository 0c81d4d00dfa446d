/** What all pages share: tables, code, links, and how a JSON Schema is put in words. */

/** Tells a reader, and a person about to edit the page, where it comes from. */
export const origin = (source: string): string =>
  `Written from ${source} by \`npm run docs\`; edit the table there, not this page.`;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

const cell = (text: string): string => text.replaceAll('\n', ' ').replace(/(?<!\\)\|/g, '\\|');

export const code = (text: string): string => `\`${text}\``;
export const codes = (texts: readonly string[]): string => texts.map(code).join(', ');

/** A link to a heading, by the anchor that Markdown viewers make of it. */
export const link = (heading: string, page = ''): string =>
  `[${code(heading)}](${page}#${heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-')})`;

export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** A value as one would type it. */
export const plain = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** As much of JSON Schema as our tables use. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly $ref?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** 'integer from 0 to 65535', 'list of Event', '`auto`, `pretty` or `json`'. */
export function form(schema: Schema): string {
  if (schema.$ref) return namedType(schema.$ref);
  if (schema.enum) return either(schema.enum.map((value) => code(plain(value))));
  if (schema.anyOf) return either(schema.anyOf.map(form));
  if (typeof schema.type === 'object') return either(schema.type.map((type) => form({ type })));
  if (schema.type === 'array') return `list of ${form(schema.items ?? {})}`;
  if (schema.type === 'object') return mapForm(schema);
  if (schema.type === 'string') return 'text';
  return `${schema.type ?? 'anything'}${bounds(schema)}`;
}

/** A type that several answers share has a heading of its own, by its name. */
function namedType(reference: string): string {
  const name = reference.split('/').at(-1) ?? '';
  return `[${name}](#${name.toLowerCase()})`;
}

const either = (words: readonly string[]): string => words.join(', ').replace(/, ([^,]*)$/, ' or $1');

function mapForm({ additionalProperties }: Schema): string {
  const isMap = typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0;
  return isMap ? `object of ${form(additionalProperties)}` : 'object';
}

function bounds({ minimum, maximum }: Schema): string {
  const hasTop = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  const hasBottom = minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER;
  if (hasTop && hasBottom) return ` from ${minimum} to ${maximum}`;
  if (hasBottom) return `, at least ${minimum}`;
  return hasTop ? `, at most ${maximum}` : '';
}
