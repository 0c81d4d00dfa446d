import { z } from 'zod';
import { isMcpTool } from '../mcp-tools.ts';
import { idSchema } from '../redis/ids.ts';
import { CATEGORIES } from './category.ts';

export const LANGUAGES = ['python', 'node', 'bash', 'docker', 'none'] as const;
export const FIELD_TYPES = ['string', 'number', 'select', 'secret', 'boolean'] as const;

/** As semver.org has it. */
const SEMVER =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const NAME_SAYS = 'must be letters, digits, "_" and "-", the first a letter or "_", at most 64 of them';

const text = (most: number) => z.string().min(1, 'must not be empty').max(most, `must be at most ${most} characters`);

/** A path below the manifest's folder: what an agent starts must not lie elsewhere. */
const entry = text(512).refine(
  (path) => !/^[/\\]|^[A-Za-z]:|\\|\0/.test(path) && path.split('/').every((part) => part !== '..'),
  'must be a relative path that stays below the folder of the manifest',
);

const option = z.union([
  text(200),
  z.number(),
  z.object({ value: z.union([text(200), z.number()]), label: text(200).optional() }),
]);
type Option = z.output<typeof option>;
const chosen = (choice: Option) => (typeof choice === 'object' ? choice.value : choice);

const configField = z
  .looseObject({
    name: z.string().regex(NAME, NAME_SAYS).describe('Name of the value'),
    label: text(200).optional().describe('What people see'),
    type: z.enum(FIELD_TYPES).describe('Kind of value'),
    required: z.boolean().default(false).describe('Must be given'),
    description: text(2000).optional().describe('Help for whoever fills it in'),
    default: z.union([z.string(), z.number(), z.boolean()]).optional().describe('Value when none is given'),
    options: z
      .array(option)
      .min(1, 'must name at least one choice')
      .max(200)
      .optional()
      .describe('Choices of a select'),
  })
  .superRefine((field, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    const { type, options, default: standard } = field;
    if (type === 'select' && !options) refuse('options', 'a select needs its choices');
    if (type !== 'select' && options) refuse('options', 'only a select has choices');
    if (standard === undefined) return;
    if (type === 'secret') refuse('default', 'a secret must not be written into a manifest');
    else if (type === 'select') {
      if (options && !options.some((choice) => chosen(choice) === standard))
        refuse('default', 'must be one of the options');
    } else if (typeof standard !== type) refuse('default', `must be a ${type}`);
  });

const agentSpecs = z.looseObject({
  function_name: z
    .string()
    .regex(NAME, NAME_SAYS)
    .refine((name) => !isMcpTool(name), 'is the name of one of the tools that reeve itself offers; choose another')
    .optional()
    .describe('What a model calls it'),
  description: text(8000).optional().describe('What a model is told about it'),
  parameters: z.record(z.string(), z.json()).optional().describe('JSON Schema of the arguments'),
  prompt: text(200_000).optional().describe('Text of a prompt; {{name}} stands for a value'),
  instructions: text(200_000).optional().describe('Text of a skill'),
});

const runtime = z
  .looseObject({
    language: z.enum(LANGUAGES).describe('What runs it'),
    entry: entry.optional().describe('File that is started, relative to the manifest'),
    handler: text(200).optional().describe('Function in that file'),
    dependencies: z.array(text(200)).max(200).default([]).describe('Packages it needs'),
  })
  .superRefine(({ language, entry: file }, context) => {
    if (!file && language !== 'none' && language !== 'docker')
      context.addIssue({ code: 'custom', path: ['entry'], message: `${language} needs the file to start` });
  });

/** Limits: a list of names, or names with settings. */
const permissions = z.union([z.array(text(200)).max(100), z.record(z.string(), z.json())]);

/** A manifest. The JSON Schema for editors is made from it. */
export const MANIFEST = z
  .object({
    id: idSchema('asset').describe('Name of the asset in the registry; letters, digits, "_" and "-"'),
    version: z
      .string()
      .regex(SEMVER, 'must be a semantic version such as 1.0.0')
      .max(128, 'must be at most 128 characters')
      .describe('Semantic version, quoted if it looks like a number'),
    category: z.enum(CATEGORIES).describe('What kind of asset it is'),
    name: text(200).describe('Name that people see'),
    description: text(8000).describe('What it does'),
    author: text(200).optional().describe('Who wrote it'),
    config_schema: z
      .array(configField)
      .max(200)
      .default([])
      .superRefine((fields, context) => {
        const seen = new Set<string>();
        fields.forEach(({ name }, at) => {
          if (seen.has(name)) context.addIssue({ code: 'custom', path: [at, 'name'], message: 'is there twice' });
          seen.add(name);
        });
      })
      .describe('Values that people set before it can be used'),
    agent_specs: agentSpecs.optional().describe('How a model uses it'),
    runtime: runtime.optional().describe('How it is run'),
    permissions: permissions.default([]).describe('What it may do; a version that asks for more waits for a person'),
    tags: z.array(text(64)).max(50).default([]).describe('Words to find it by'),
  })
  .superRefine(({ category, agent_specs: specs }, context) => {
    if (category === 'tool' && specs && !specs.function_name)
      context.addIssue({ code: 'custom', path: ['agent_specs', 'function_name'], message: 'a tool needs one' });
  });

/** What a manifest says, after it was read. */
export type Manifest = z.output<typeof MANIFEST>;

export const MANIFEST_KEYS: readonly string[] = Object.keys(MANIFEST.shape);

/** The JSON Schema of manifest.yaml, for editors. */
export const manifestSchema = (): Record<string, unknown> => ({
  ...z.toJSONSchema(MANIFEST, { io: 'input', unrepresentable: 'any' }),
  $id: 'urn:reeve:manifest',
  title: 'Asset manifest',
});
