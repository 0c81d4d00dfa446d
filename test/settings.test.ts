import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Given, loadConfig } from '../src/config.ts';
import { ReeveError } from '../src/errors.ts';
import { isId, RESERVED_PROJECTS } from '../src/redis/ids.ts';
import { listSettings, settingsSchema } from '../src/settings.ts';
import { testFolder } from './support/folder.ts';

const settings = listSettings();

function isLoaded(given: Given): boolean {
  try {
    return loadConfig(given) !== undefined;
  } catch (error) {
    if (error instanceof ReeveError && error.code === 'CONFIG_INVALID') return false;
    throw error;
  }
}

describe('the table of settings', () => {
  test('derives a name for each door', () => {
    const timeout = settings.find(({ name }) => name === 'redis.commandTimeoutMs');
    expect(timeout).toMatchObject({
      flag: '--redis-command-timeout-ms',
      variables: ['REEVE_REDIS_COMMAND_TIMEOUT_MS'],
    });
  });

  test.each(['name', 'flag'] as const)('gives no %s twice', (property) => {
    expect(new Set(settings.map((setting) => setting[property])).size).toBe(settings.length);
  });

  test('gives no variable twice, nor one that would name the file of another', () => {
    const variables = settings.flatMap((setting) => setting.variables);
    const files = settings
      .filter(({ secret }) => secret)
      .flatMap((setting) => setting.variables.map((it) => `${it}_FILE`));
    expect(new Set([...variables, ...files]).size).toBe(variables.length + files.length);
  });

  test.each(settings.map((setting) => [setting.name, setting] as const))('describes %s in a line', (_, setting) => {
    expect(setting.description).toMatch(/^\S.*[^.\s]$/);
    expect(setting.description.length).toBeLessThanOrEqual(130);
  });

  test('hides whatever sounds like a secret', () => {
    const sounding = settings.filter(({ name }) => /password|token|secret/i.test(name));
    expect(sounding.filter(({ secret }) => !secret)).toEqual([]);
  });

  test('refuses the project names that keys refuse, and no others', () => {
    const takes = (project: string) => isLoaded({ flags: { project }, env: {}, cwd: '/nowhere' });
    const names = [
      ...RESERVED_PROJECTS,
      'odyssey',
      'Web_1',
      '-a',
      '_a',
      '__proto__',
      'a.b',
      'a b',
      '9',
      'x'.repeat(64),
      'x'.repeat(65),
    ];
    expect(names.filter(takes)).toEqual(names.filter((name) => isId('project', name)));
  });
});

describe('the schema for editors', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  const isValid = ajv.compile(settingsSchema());

  /** Documents, and whether both the editor and the daemon must take them. */
  test.each([
    ['', true],
    ['http:', true],
    ['http: {}', true],
    ['http: {port: 0}', true],
    ['http: {port: 65536}', false],
    ['http: {port: "80"}', false],
    ['http: {port: 80.5}', false],
    ['http: {port: }', false],
    ['http: {prot: 80}', false],
    ['http: []', false],
    ['unknown: 1', false],
    ['log: {level: trace, format: pretty}', true],
    ['log: {level: loud}', false],
    ['project: web-shop', true],
    ['project: ade', false],
    ['project: a/b', false],
    ['dataDir: ""', false],
    ['redis: {url: "redis://a,b/0", mode: cluster}', true],
    ['redis: {url: "http://a"}', false],
    ['redis: {tls: {verify: false}}', true],
    ['redis: {tls: {verify: "no"}}', false],
    ['redis: {tls: }', true],
    ['github: {repo: acme/assets}', true],
    ['github: {repo: acme}', false],
    ['github: {token: ""}', false],
    ['events: {keep: 99}', false],
    ['[1]', false],
  ])('agrees with the loader on %j: %s', (yaml, isGood) => {
    using folder = testFolder();
    folder.write('reeve.yaml', yaml);
    expect({ editor: isValid(parse(yaml)), loader: isLoaded({ env: {}, cwd: folder.path }) }).toEqual({
      editor: isGood,
      loader: isGood,
    });
  });

  test('takes the defaults as they are', () => {
    const usual = (node: ReturnType<typeof settingsSchema>): unknown =>
      Object.fromEntries(
        Object.entries((node.properties ?? {}) as Record<string, Record<string, unknown>>)
          .map(([name, child]) => [name, child.properties ? usual(child) : child.default])
          .filter(([, value]) => value !== undefined),
      );
    isValid(usual(settingsSchema()));
    expect(isValid.errors).toBeNull();
  });
});
