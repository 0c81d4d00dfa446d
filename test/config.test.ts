import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { run as showConfig } from '../src/cli/commands/config-show.ts';
import { makeManifest } from '../src/cli/manifest.ts';
import type { Output } from '../src/cli/output.ts';
import { type Given, loadConfig, maskedConfig } from '../src/config.ts';
import { ReeveError } from '../src/errors.ts';
import { NOTIFICATION_ROUTE } from '../src/notification-route.ts';
import { operations } from '../src/operations/index.ts';
import { REVIEWER_POLICY } from '../src/reviewer-policy.ts';
import { listSettings, type Setting } from '../src/settings.ts';
import { testFolder } from './support/folder.ts';
import { capturedLog } from './support/log.ts';

/** Two values for each setting whose form is narrower than its type. */
const SAMPLES: Readonly<Record<string, readonly [unknown, unknown]>> = {
  'tasks.archiveKeepDays': [91, 365],
  'files.s3.endpoint': ['http://one', 'http://two'],
  'files.s3.prefix': ['one/', 'two/'],
  project: ['alpha', 'beta'],
  'redis.url': ['redis://one.example:6379', 'rediss://two.example:6379/1'],
  'store.url': ['sqlite:/data/one.db', 'postgres://two.example/db'],
  'github.repo': ['acme/one', 'acme/two'],
  'assets.include': [['one/**/*.yaml'], ['two/*.{yaml,yml}', 'three.json']],
  'assets.sources': [[{ name: 'one', github: 'acme/one' }], [{ name: 'two', dir: '/elsewhere/two' }]],
  'assets.guards.massDelete': [0.5, 1],
  'sync.schedule': ['5m', '0 3 * * 1'],
  'github.appInstallationId': ['1', '20'],
  'github.webhookId': [1, 20],
  'notifications.routes': [
    [NOTIFICATION_ROUTE.parse({ name: 'one', url: 'https://example.com/' })],
    [NOTIFICATION_ROUTE.parse({ name: 'two', slack: 'https://example.com/' })],
  ],
  'approvals.policies': [[REVIEWER_POLICY.parse({ policy_id: 'one' })], [REVIEWER_POLICY.parse({ policy_id: 'two' })]],
  'approvals.criticality': [
    [{ pattern: 'database:*', criticality: 10, used_by: [] }],
    [{ pattern: 'secret:*', criticality: 90, used_by: ['all'] }],
  ],
  'approvals.groups': [{ dba: ['ann'] }, { dba: ['ben', 'cid'] }],
  'github.apiUrl': ['https://one.example', 'http://two.example'],
};

/** Two values that the setting takes, neither of them its default, unless it has only two. */
function samples({ name, schema, path }: Setting): readonly [unknown, unknown] {
  const named = SAMPLES[name];
  if (named) return named;
  if (schema.type === 'boolean') return [!schema.default, schema.default];
  if (schema.enum) {
    const [one, two] = schema.enum.filter((value) => value !== schema.default);
    return [one, two];
  }
  if (schema.type === 'integer' || schema.type === 'number')
    return [Number(schema.default) + 1, Number(schema.default) + 2];
  return path ? ['/elsewhere/one', '/elsewhere/two'] : ['one', 'two'];
}

const at = (tree: unknown, name: string): unknown =>
  name.split('.').reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], tree);

const nested = (name: string, value: unknown): unknown =>
  name.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The problems that the loader names, one a line; none if it loads. */
function problemsOf(given: Given): string[] {
  try {
    loadConfig(given);
    return [];
  } catch (error) {
    if (!(error instanceof ReeveError) || error.code !== 'CONFIG_INVALID') throw error;
    return String(error.details.problems)
      .split('\n')
      .map((line) => line.trim());
  }
}

const NOTHING: Given = { flags: {}, env: {}, cwd: '/nowhere' };
const settings = listSettings();

describe('precedence', () => {
  const everySetting = settings.map((setting) => [setting.name, setting] as const);

  test.each(everySetting)('%s: flag, then variable, then file, then default', (name, setting) => {
    using folder = testFolder();
    const [one, two] = samples(setting);
    const [variable = ''] = setting.variables;
    const flag = { [setting.flag.slice(2)]: text(one) };
    const say = (value: unknown) => folder.write('reeve.yaml', stringify(nested(name, value)));
    const load = (given: Given) => {
      const { config, sources } = loadConfig({ env: {}, ...given, cwd: folder.path });
      return [at(config, name), sources[name]];
    };

    const [usual, from] = load({});
    expect(from).toBe('default');
    expect(usual).toEqual(setting.path || setting.schema.default === undefined ? usual : setting.schema.default);

    say(one);
    expect(load({})).toEqual([one, expect.stringMatching(/^reeve\.yaml:\d+$/)]);
    say(two);
    expect(load({ env: { [variable]: text(one) } })).toEqual([one, `environment ${variable}`]);
    expect(load({ env: { [variable]: text(two) }, flags: flag })).toEqual([one, `flag ${setting.flag}`]);
    expect(load({ flags: flag })).toEqual([one, `flag ${setting.flag}`]);
  });

  const conventional = settings.flatMap((setting) =>
    setting.variables.slice(1).map((name) => [name, setting] as const),
  );

  test.each(conventional)('%s works, and its REEVE_ name goes before it', (variable, setting) => {
    const [one, two] = samples(setting);
    const [own = ''] = setting.variables;
    const load = (env: Record<string, string>) => {
      const { config, sources } = loadConfig({ ...NOTHING, env });
      return [at(config, setting.name), sources[setting.name]];
    };
    expect(load({ [variable]: text(one) })).toEqual([one, `environment ${variable}`]);
    expect(load({ [variable]: text(two), [own]: text(one) })).toEqual([one, `environment ${own}`]);
  });

  test.each(everySetting)('%s: an empty variable counts as not set', (name, { variables }) => {
    const env = Object.fromEntries(variables.map((variable) => [variable, '']));
    expect(loadConfig({ ...NOTHING, env }).sources[name]).toBe('default');
  });
});

describe('the file', () => {
  test('is reeve.yaml of the working directory, else the one that a flag or a variable names', () => {
    using folder = testFolder();
    const usual = folder.write('reeve.yaml', 'project: usual');
    const other = folder.write('other.yaml', 'project: other');
    const third = folder.write('third.yaml', 'project: third');
    const load = (given: Given) => {
      const { config, file } = loadConfig({ env: {}, ...given, cwd: folder.path });
      return [config.project, file];
    };
    expect(load({})).toEqual(['usual', usual]);
    expect(load({ env: { REEVE_CONFIG: '' } })).toEqual(['usual', usual]);
    expect(load({ env: { REEVE_CONFIG: 'other.yaml' } })).toEqual(['other', other]);
    expect(load({ env: { REEVE_CONFIG: 'other.yaml' }, flags: { config: third } })).toEqual(['third', third]);
  });

  test('may be missing, unless it was named', () => {
    expect(loadConfig(NOTHING).file).toBeUndefined();
    expect(() => loadConfig({ ...NOTHING, flags: { config: 'gone.yaml' } })).toThrow(
      expect.objectContaining({ code: 'CONFIG_UNREADABLE', message: expect.stringContaining('/nowhere/gone.yaml') }),
    );
  });

  test.each(['', '# nothing but a comment\n', 'http:\n', 'redis:\n  tls:\n'])('may say nothing: %j', (yaml) => {
    using folder = testFolder();
    folder.write('reeve.yaml', yaml);
    expect(problemsOf({ env: {}, cwd: folder.path })).toEqual([]);
  });

  test.each([
    ['htpp:\n  port: 1\n', 'unknown setting htpp (reeve.yaml:1); did you mean http?'],
    ['http:\n  host: localhost\n  prot: 1\n', 'unknown setting http.prot (reeve.yaml:3); did you mean http.port?'],
    ['colour: blue\n', 'unknown setting colour (reeve.yaml:1)'],
    ['http: 8080\n', 'http: must be a mapping (reeve.yaml:1)'],
    ['- http\n', 'reeve.yaml: must be a mapping of settings'],
    ['http:\n  port: "8080"\n', 'http.port: Invalid input: expected number, received string (reeve.yaml:2)'],
    ['\n\nlog: {level: loud}\n', /^log\.level: Invalid option: .* \(reeve\.yaml:3\)$/],
    ['http:\n  port: 1\n  port: 2\n', /^reeve\.yaml:3: Map keys must be unique/],
    ['http:\n\tport: 1\n', /^reeve\.yaml:2: /],
    ['http: {port: 1\n', /^reeve\.yaml:\d: /],
  ])('is refused with the place of its mistake: %j', (yaml, problem) => {
    using folder = testFolder();
    folder.write('reeve.yaml', yaml);
    expect(problemsOf({ env: {}, cwd: folder.path })[0]).toMatch(problem);
  });

  test.each(settings.filter(({ path }) => path).map(({ name, flag, variables }) => [name, flag, variables[0] ?? '']))(
    '%s is relative to the file that names it, else to the working directory',
    (name, flag, variable) => {
      using folder = testFolder();
      mkdirSync(join(folder.path, 'etc'));
      const config = folder.write('etc/reeve.yaml', stringify(nested(name, 'some/where')));
      const load = (given: Given) => at(loadConfig({ env: {}, ...given, cwd: folder.path }).config, name);
      expect(load({ flags: { config } })).toBe(join(folder.path, 'etc/some/where'));
      expect(load({ env: { [variable]: 'some/where' } })).toBe(join(folder.path, 'some/where'));
      expect(load({ flags: { [flag.slice(2)]: 'some/where' } })).toBe(join(folder.path, 'some/where'));
      expect(load({ flags: { [flag.slice(2)]: '/some/where' } })).toBe('/some/where');
    },
  );
});

describe('the environment', () => {
  test('may not hold a REEVE_ variable that nobody knows', () => {
    expect(problemsOf({ ...NOTHING, env: { REEVE_HTTP_PROT: '1', REEVE_SAUSAGE: '2', PATH: '/bin' } })).toEqual([
      'unknown variable REEVE_HTTP_PROT in the environment; did you mean REEVE_HTTP_PORT?',
      'unknown variable REEVE_SAUSAGE in the environment',
    ]);
    expect(problemsOf({ ...NOTHING, env: { REEVE_PORT: '7420' } })).toHaveLength(1);
  });

  test('may hold what the command line reads, and what Kubernetes sets beside services called reeve', () => {
    const ours = { REEVE_URL: 'http://127.0.0.1:1', REEVE_TOKEN: 't', REEVE_OUTPUT: 'json', REEVE_NO_INPUT: '1' };
    const links = {
      REEVE_SERVICE_HOST: '10.0.0.1',
      REEVE_SERVICE_PORT: '7420',
      REEVE_SERVICE_PORT_HTTP: '7420',
      REEVE_PORT: 'tcp://10.0.0.1:7420',
      REEVE_PORT_7420_TCP: 'tcp://10.0.0.1:7420',
      REEVE_PORT_7420_TCP_PROTO: 'tcp',
      REEVE_PORT_7420_TCP_PORT: '7420',
      REEVE_PORT_7420_TCP_ADDR: '10.0.0.1',
      REEVE_REDIS_SERVICE_HOST: '10.0.0.2',
      REEVE_REDIS_PORT: 'tcp://10.0.0.2:6379',
      REEVE_REDIS_PORT_6379_TCP_ADDR: '10.0.0.2',
      REEVE_HTTP_PORT: 'tcp://10.0.0.3:80',
    };
    const { config, sources } = loadConfig({ ...NOTHING, env: { ...ours, ...links } });
    expect([config.http.port, sources['http.port']]).toEqual([7420, 'default']);
  });

  const secrets = settings.filter(({ secret }) => secret);

  test.each(secrets.flatMap((setting) => setting.variables.map((variable) => [variable, setting] as const)))(
    '%s_FILE names a file that holds it',
    (variable, setting) => {
      using folder = testFolder();
      const [one, two] = samples(setting);
      folder.write('secret', `${text(one)}\n`);
      const load = (env: Record<string, string>) => {
        const { config, sources } = loadConfig({ env, cwd: folder.path });
        return [at(config, setting.name), sources[setting.name]];
      };
      const named = { [`${variable}_FILE`]: 'secret' };
      expect(load(named)).toEqual([one, `environment ${variable}_FILE`]);
      expect(load({ ...named, [variable]: text(two) })).toEqual([two, `environment ${variable}`]);
      expect(problemsOf({ ...NOTHING, env: { [`${variable}_FILE`]: '/nowhere/secret' } })).toEqual([
        expect.stringMatching(`^${variable}_FILE: ENOENT`),
      ]);
    },
  );

  test('takes a file only for what is secret', () => {
    expect(problemsOf({ ...NOTHING, env: { REEVE_LOG_LEVEL_FILE: '/etc/level' } })).toHaveLength(1);
  });

  test('says where caches belong and what the machine is called', () => {
    const cacheDir = (env: Record<string, string>) => loadConfig({ ...NOTHING, env }).config.cacheDir;
    expect(cacheDir({ XDG_CACHE_HOME: '/caches', HOME: '/home/ann' })).toBe('/caches/reeve');
    expect(cacheDir({ HOME: '/home/ann' })).toBe('/home/ann/.cache/reeve');
    expect(loadConfig(NOTHING).config.instance).toBe(hostname());
  });
});

describe('the result', () => {
  test('names every problem of every place at once', () => {
    using folder = testFolder();
    folder.write('reeve.yaml', 'http:\n  prot: 1\nredis:\n  mode: ring\n');
    const env = { REEVE_LGO_LEVEL: 'info', GITHUB_REPO: 'no-slash', REEVE_GITHUB_TOKEN_FILE: '/nowhere/token' };
    const problems = problemsOf({ flags: { 'http-port': '70000' }, env, cwd: folder.path });
    expect(problems).toEqual([
      expect.stringMatching(/^REEVE_GITHUB_TOKEN_FILE: /),
      'unknown variable REEVE_LGO_LEVEL in the environment; did you mean REEVE_LOG_LEVEL?',
      'unknown setting http.prot (reeve.yaml:2); did you mean http.port?',
      'http.port: Too big: expected number to be <=65535 (flag --http-port)',
      'redis.mode: Invalid option: expected one of "standalone"|"sentinel"|"cluster" (reeve.yaml:4)',
      'github.repo: must be OWNER/NAME (environment GITHUB_REPO)',
    ]);
  });

  test('says where an entry of a list is wrong', () => {
    const env = { REEVE_ASSETS_SOURCES: '[{"name":"one","github":"acme"}]' };
    expect(problemsOf({ ...NOTHING, env })).toEqual([
      'assets.sources.0.github: must be OWNER/NAME (environment REEVE_ASSETS_SOURCES)',
    ]);
  });

  test('cannot be changed, at any depth', () => {
    const { config } = loadConfig(NOTHING);
    const isFrozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
    expect(isFrozen(config)).toBe(true);
  });

  test('reads numbers and truths out of texts', () => {
    const flags = { 'http-port': '0', 'http-drain-seconds': '0.5', 'redis-tls-verify': 'no' };
    const { config } = loadConfig({ ...NOTHING, flags });
    expect([config.http.port, config.http.drainSeconds, config.redis.tls.verify]).toEqual([0, 0.5, false]);
    expect(loadConfig({ ...NOTHING, flags: { 'redis-tls-verify': true } }).config.redis.tls.verify).toBe(true);
  });
});

describe('secrets', () => {
  /** Text that stands for itself nowhere else, with what makes URLs hard to read. */
  const secret = fc
    .string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(...'abcXYZ019!$&*()+,;=-._~%:?#[]'.split('')) })
    .map((tail) => `s3cr3t${tail}`);
  const alone = settings.filter((setting) => setting.secret === true);
  const urls = settings.filter((setting) => setting.secret === 'url');

  const withSecret = (value: string): Record<string, string> => ({
    ...Object.fromEntries(alone.map(({ variables }) => [variables[0] ?? '', value])),
    ...Object.fromEntries(urls.map(({ variables }) => [variables[0] ?? '', `redis://user:${value}@host.example:1/0`])),
    REEVE_ASSETS_SOURCES: JSON.stringify([{ name: 'one', github: 'acme/one', token: value, webhookSecret: value }]),
  });

  test('there are some', () => {
    expect(alone.length).toBeGreaterThan(2);
    expect(urls.length).toBeGreaterThan(1);
  });

  test('appear in no form of the shown configuration', async () => {
    await fc.assert(
      fc.asyncProperty(secret, async (value) => {
        const env = withSecret(value);
        const { config } = loadConfig({ ...NOTHING, env });
        expect(JSON.stringify(config)).toContain('s3cr3t');
        expect(JSON.stringify(maskedConfig(config))).not.toContain('s3cr3t');
        for (const form of ['table', 'lines', 'json'] as const) {
          for (const sources of [undefined, true] as const)
            expect(await shown(form, sources, env)).not.toContain('s3cr3t');
        }
      }),
      { numRuns: 20 },
    );
  });

  test('are hidden even in a URL whose password nobody encoded', () => {
    for (const url of [
      'redis://:s3cr3t/s3cr3t@host',
      'redis://u:a@s3cr3t@host',
      'rediss://s3cr3t@host/0?password=s3cr3t',
    ]) {
      const { config } = loadConfig({ ...NOTHING, env: { REDIS_URL: url } });
      expect(JSON.stringify(maskedConfig(config))).not.toContain('s3cr3t');
    }
  });

  test('appear in no line of the log, wherever in it the configuration is put', async () => {
    for (const format of ['json', 'pretty'] as const) {
      const { log, text: logged } = await capturedLog({ level: 'trace', format });
      const { config } = loadConfig({ ...NOTHING, env: withSecret('s3cr3t') });
      log.info('all', { config });
      log.error('parts', { ...config.github, list: [config.redis], url: config.store.url });
      expect(await logged()).toContain('host.example');
      expect(await logged()).not.toContain('s3cr3t');
    }
  });

  test('appear in no complaint about them', () => {
    const env = {
      REDIS_URL: 'htpp://user:s3cr3t@host',
      DATABASE_URL: 'postgres://u:s3cr3t@host',
      REEVE_LOG_LEVEL: 'x',
    };
    expect(problemsOf({ ...NOTHING, env }).join('\n')).not.toContain('s3cr3t');
    expect(problemsOf({ ...NOTHING, env })).toContain(
      'redis.url: must be a URL starting with redis://, rediss:// or unix:// (environment REDIS_URL)',
    );
  });
});

/** What `reeve config show` prints. */
async function shown(form: Output['form'], sources: true | undefined, env: Record<string, string>): Promise<string> {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const output: Output = {
    form,
    columns: 1_000,
    style: (_, line) => line,
    print,
    hint: print,
    status: () => {},
    json: (value) => print(JSON.stringify(value)),
  };
  const manifest = makeManifest(operations, '0.0.0');
  const command = manifest.commands.find(({ words }) => words.join(' ') === 'config show')!;
  const never = AbortSignal.any([]);
  const surroundings = { manifest, env, cwd: '/nowhere', signal: never, insisted: () => never };
  const exit = await showConfig({ command, input: { sources }, flags: {} }, output, surroundings);
  expect(exit).toBe(0);
  expect(printed.join('\n')).toContain('host.example');
  return printed.join('\n');
}
