import { CORE_SCHEMA, defineMappingTag, load, type Schema } from 'js-yaml';
import { MAX_DEPTH } from './yaml-careful.ts';

/**
 * What makes a file unusual: tabs, anchors, aliases, tags, merge keys, directives, further documents, explicit keys and
 * indentations, text right after a quote or bracket, and the one key name that objects treat specially. Looking for them is cheap; being wrong only costs time.
 * No part of it may look far ahead: a file is made by anyone, and the search must stay linear.
 */
const UNUSUAL =
  /[\t\u0085\u2028\u2029\uFEFF]|\r(?!\n)|\\u[dD][89a-fA-F]|(?:^|[\s[{,:-])(?:[&*]\S|!|\?(?=\s|$))|<<|^ {0,200}(?:---|\.\.\.|%)|__proto__|[|>][+-]?\d|[\]}][^\s,\]}]|(?:^|[\s[{,-])(?:'[^'\n]*'|"[^"\n]*")[^\s,:\]}'"]/m;

/** YAML's core schema, but a key is text or the file is unusual: 1.0 as a key would become "1" here and "1.0" there. */
const textKeys = (): Schema =>
  CORE_SCHEMA.withTags(
    defineMappingTag<Record<string, unknown>>('tag:yaml.org,2002:map', {
      create: () => ({}),
      addPair: (mapping, key, value) => {
        if (typeof key !== 'string') return 'the key is not text';
        mapping[key] = value;
        return '';
      },
      has: (mapping, key) => Object.hasOwn(mapping, key as string),
      keys: (mapping) => Object.keys(mapping),
      get: (mapping, key) => mapping[key as string],
      identify: () => false,
    }),
  );

/**
 * The quick way, for plain files: a tenth of the time. Undefined means that the careful way must look, because the file is
 * unusual, wrong or no mapping. Where it answers, it answers what the careful way would: a property test holds the two
 * together.
 */
export function createPlainReader(): (text: string) => Readonly<Record<string, unknown>> | undefined {
  const options = { schema: textKeys(), maxDepth: MAX_DEPTH, maxAliases: 0 };
  return (text) => {
    if (UNUSUAL.test(text)) return undefined;
    try {
      const value: unknown = load(text, options);
      return isMapping(value) ? value : undefined;
    } catch {
      return undefined;
    }
  };
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
