import { z } from 'zod';
import { LOG_LEVELS } from './log.ts';
import { MANIFESTS } from './manifest-globs.ts';
import { NOTIFICATION_ROUTE } from './notification-route.ts';
import { CRITICALITY_ROW, type DeepReadonly, REVIEWER_POLICY } from './reviewer-policy.ts';
import { parseSchedule } from './schedule.ts';

/** What a setting's metadata may say besides its description. It travels into the JSON Schema for editors as it is. */
export interface SettingMeta {
  /** Conventional variables that work besides the derived REEVE_… one. */
  readonly env?: readonly string[];
  /** Never shown; of a 'url' only the user and password are hidden. */
  readonly secret?: boolean | 'url';
  /** A file or folder: relative to the file that names it, or to the working directory. */
  readonly path?: boolean;
  /** What a refinement refuses, said once more in the words of JSON Schema. */
  readonly not?: { readonly enum: readonly string[] };
}

const setting = <S extends z.ZodType>(schema: S, description: string, meta: SettingMeta = {}): S =>
  schema.meta({ description, ...meta });
const section = <S extends z.ZodRawShape>(description: string, shape: S) =>
  z
    .strictObject(shape)
    .prefault({} as never)
    .meta({ description });

const path = z.string().min(1, 'must not be empty');
const url = (schemes: string, pattern: RegExp) => z.string().regex(pattern, `must be a URL starting with ${schemes}`);
/** The ids of redis/ids.ts have the same rule: a key of such a project would be read as another's. */
const PROJECT_RESERVED = [
  'ade',
  'asset',
  'task',
  'project',
  'prototype',
  ...Object.getOwnPropertyNames(Object.prototype),
];

const REPO = z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'must be OWNER/NAME');
const SLUG = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be letters, digits, - and _, at most 64');
const SCHEDULE = z
  .string()
  .refine((text) => parseSchedule(text) !== undefined, 'must be 30s, 5m, 2h, a cron expression or off');

/** One entry of assets.sources: exactly one of github, git and dir says what it is. */
export const ASSET_SOURCE = z
  .strictObject({
    name: SLUG.meta({ description: 'What commands call it' }),
    namespace: SLUG.optional().meta({ description: 'Its assets live under this; the first source may leave it out' }),
    github: REPO.optional().meta({ description: 'A repository on GitHub, as OWNER/NAME' }),
    git: z.string().min(1).optional().meta({ description: 'A clone or bare repository on this machine' }),
    dir: z.string().min(1).optional().meta({ description: 'A plain folder' }),
    branch: z.string().min(1).optional().meta({ description: 'Default: the default branch' }),
    apiUrl: z
      .string()
      .regex(/^https?:\/\//)
      .optional()
      .meta({ description: 'Default: github.apiUrl' }),
    token: setting(z.string().min(1).optional(), 'Default: github.token', { secret: true }),
    webhookSecret: setting(z.string().min(1).optional(), 'Default: github.webhookSecret', { secret: true }),
    previousWebhookSecret: setting(
      z.string().min(1).optional(),
      'The secret before webhookSecret, still accepted. Default: github.previousWebhookSecret if webhookSecret is its default, too',
      { secret: true },
    ),
    webhookId: z.int().min(1).optional().meta({ description: 'Default: github.webhookId' }),
    include: z.array(z.string().min(1)).min(1).optional().meta({ description: 'Default: assets.include' }),
    schedule: SCHEDULE.optional().meta({ description: 'Default: sync.schedule' }),
  })
  .refine(
    ({ github, git, dir }) => [github, git, dir].filter(Boolean).length === 1,
    'must have one of github, git and dir',
  );
export type AssetSource = z.output<typeof ASSET_SOURCE>;

/** Every setting of reeve. Environment names, flags, the editor schema and docs/settings.md are derived from it. */
export const SETTINGS = z.strictObject({
  dataDir: setting(path.default('.reeve'), 'Where the daemon keeps its files', { path: true }),
  cacheDir: setting(path.optional(), 'Where a private redis-server is kept. Default: reeve in the user cache folder', {
    path: true,
  }),
  project: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be letters, digits, - and _, at most 64')
      .refine((name) => !PROJECT_RESERVED.includes(name), 'must not be a reserved word')
      .default('odyssey'),
    'The project name: first part of the coordination keys',
    { not: { enum: PROJECT_RESERVED } },
  ),
  instance: setting(
    z.string().min(1).max(128).optional(),
    'What this daemon calls itself in events. Default: the host name',
  ),

  http: section('The HTTP door', {
    host: setting(z.string().min(1).default('127.0.0.1'), 'Address to listen on'),
    port: setting(z.int().min(0).max(65535).default(7420), 'Port to listen on; 0 takes any free one'),
    bodyLimitBytes: setting(z.int().min(1024).default(1_048_576), 'Largest request body accepted'),
    requestSeconds: setting(
      z.number().min(1).max(3600).default(30),
      'How long a request may take to arrive, its body included; answers may take any time',
    ),
    drainSeconds: setting(z.number().min(0).max(600).default(10), 'How long open requests may finish when stopping'),
  }),

  log: section('The log', {
    level: setting(z.enum(LOG_LEVELS).default('info'), 'Least severe level written', { env: ['LOG_LEVEL'] }),
    format: setting(
      z.enum(['auto', 'pretty', 'json']).default('auto'),
      'auto is pretty on a terminal, else JSON lines',
    ),
  }),

  redis: section('Redis. Without a url, a private redis-server is run in the data directory', {
    url: setting(
      url('redis://, rediss:// or unix://', /^(rediss?|unix):\/\//).optional(),
      'One server, or for Sentinel and Cluster several hosts separated by commas: redis://user:password@host:port,host:port/0',
      { env: ['REDIS_URL'], secret: 'url' },
    ),
    mode: setting(
      z.enum(['standalone', 'sentinel', 'cluster']).default('standalone'),
      'What the hosts of redis.url are',
    ),
    sentinelName: setting(z.string().min(1).default('mymaster'), 'Name of the master that the Sentinels watch'),
    sentinelPassword: setting(z.string().optional(), 'Password of the Sentinels themselves', { secret: true }),
    server: setting(path.optional(), 'Program to run as the private server. Default: found or fetched', { path: true }),
    commandTimeoutMs: setting(z.int().min(100).default(5_000), 'How long one command may take'),
    allowEviction: setting(
      z.boolean().default(false),
      'Start although the server drops keys when its memory is full, by which a lock could be had twice',
    ),
    tls: section('TLS of a rediss:// url', {
      caFile: setting(path.optional(), 'Certificate authority to trust (PEM)', { path: true }),
      certFile: setting(path.optional(), 'Client certificate (PEM)', { path: true }),
      keyFile: setting(path.optional(), 'Client key (PEM)', { path: true }),
      verify: setting(z.boolean().default(true), 'Check the certificate of the server'),
      serverName: setting(z.string().optional(), 'Name to expect in the certificate, if not the host'),
    }),
  }),

  store: section('The durable database', {
    url: setting(z.string().min(1).optional(), 'postgres://… or sqlite:FILE. Default: reeve.db in the data directory', {
      env: ['DATABASE_URL'],
      secret: 'url',
    }),
  }),

  prd: section('The task file', {
    path: setting(
      path.optional(),
      'SQLite file with the tasks. Default: prd.db in the working directory, else a sample in the data directory',
      { env: ['PRD_DB'], path: true },
    ),
  }),

  assets: section('Where agent assets come from', {
    dir: setting(path.default('assets'), 'Folder that is mirrored when github.repo is not set', { path: true }),
    include: setting(
      z
        .array(z.string().min(1))
        .min(1)
        .default([...MANIFESTS]),
      'Which files are looked at as manifests (globs)',
    ),
    sources: setting(
      z.array(ASSET_SOURCE).default([]),
      'Several sources, each with a namespace of its own, in place of assets.dir and github.repo; as JSON outside the file',
    ),
    guards: section('Changes that wait for a person', {
      massDelete: setting(
        z.number().min(0).max(1).default(0.3),
        'Hold deletions of more than this share of all assets; 1 holds only the deletion of all',
      ),
      widening: setting(z.boolean().default(true), 'Hold an asset that asks for more permissions than before'),
      historyRewrite: setting(z.boolean().default(true), 'Hold a commit that does not descend from the last one'),
    }),
  }),

  sync: section('When the sources are asked', {
    schedule: setting(
      SCHEDULE.default('1m'),
      'An interval (30s, 5m, 2h), a cron expression, or off for only when told to',
    ),
  }),

  github: section('GitHub', {
    repo: setting(
      z
        .string()
        .regex(/^[\w.-]+\/[\w.-]+$/, 'must be OWNER/NAME')
        .optional(),
      'Repository that holds the assets, as OWNER/NAME',
      { env: ['GITHUB_REPO'] },
    ),
    branch: setting(z.string().min(1).optional(), 'Branch to mirror. Default: the default branch of the repository', {
      env: ['GITHUB_BRANCH'],
    }),
    token: setting(z.string().min(1).optional(), 'Token with read access to the repository', {
      env: ['GITHUB_TOKEN'],
      secret: true,
    }),
    apiUrl: setting(
      url('https:// or http://', /^https?:\/\//).default('https://api.github.com'),
      'API address; differs on GitHub Enterprise',
      { env: ['GITHUB_API_URL'] },
    ),
    appId: setting(z.string().min(1).optional(), 'Log in as this GitHub App, in place of a token', {
      env: ['GITHUB_APP_ID'],
    }),
    appPrivateKey: setting(z.string().min(1).optional(), 'Private key of the App (PEM)', {
      env: ['GITHUB_APP_PRIVATE_KEY'],
      secret: true,
    }),
    appInstallationId: setting(
      z.string().regex(/^\d+$/, 'must be a number').optional(),
      'Installation of the App that may read the repository',
      { env: ['GITHUB_APP_INSTALLATION_ID'] },
    ),
    webhookSecret: setting(z.string().min(1).optional(), 'Secret that signs webhook deliveries', {
      env: ['GITHUB_WEBHOOK_SECRET'],
      secret: true,
    }),
    previousWebhookSecret: setting(
      z.string().min(1).optional(),
      'The secret before that, still accepted while it is being changed',
      { env: ['GITHUB_PREVIOUS_WEBHOOK_SECRET'], secret: true },
    ),
    webhookId: setting(
      z.int().min(1).optional(),
      'Number of the webhook whose missed deliveries are asked for again. Default: found by its address',
      { env: ['GITHUB_WEBHOOK_ID'] },
    ),
  }),

  limits: section('How often a caller may ask, by who it is. 0 is no limit', {
    createPerMinute: setting(z.int().min(0).default(600), 'Tasks that one caller may create in the long run'),
    createBurst: setting(z.int().min(1).default(200), 'Tasks at once, after a rest'),
    respondPerMinute: setting(z.int().min(0).default(300), 'Answers to approval requests in the long run'),
    respondBurst: setting(z.int().min(1).default(100), 'Answers at once, after a rest'),
    everyone: setting(z.int().min(1).max(1_000).default(20), 'How many times as much all callers together may'),
  }),

  locks: section('Locks. The values of ade:config:lock:* in Redis win over these', {
    defaultTtlSeconds: setting(
      z.int().min(1).max(86_400).default(30),
      'How long a lock of a process lives without a heartbeat',
    ),
    maxTtlSeconds: setting(z.int().min(1).max(86_400).default(900), 'Longest lease that can be asked or renewed for'),
    heartbeatSeconds: setting(z.int().min(1).max(3_600).default(10), 'Time between two heartbeats'),
    queueDepth: setting(z.int().min(1).max(10_000).default(1_000), 'How many may wait for one lock'),
    acquirePerMinute: setting(
      z.int().min(0).default(600),
      'How often an agent may ask for new locks in the long run; 0 is no limit',
    ),
    acquireBurst: setting(z.int().min(1).default(100), 'How often at once, after a rest'),
    replicas: setting(
      z.int().min(0).max(100).default(0),
      'How many Redis replicas must have a grant before it counts, so that a failover does not lose it; 0 asks none',
    ),
    replicasWithinMs: setting(z.int().min(1).max(4_000).default(1_000), 'How long they have for it'),
  }),

  tasks: section('The work queue', {
    listed: setting(
      z.int().min(1).max(1_000_000).default(1_000),
      'How many ready tasks the public list shows; the others wait in order behind it',
    ),
    exclusive: setting(
      z.boolean().default(false),
      'Let the public list show only tasks that can run side by side, so that plain clients do not collide either',
    ),
    priorityOrder: setting(
      z.enum(['asc', 'desc', 'auto']).default('auto'),
      'Which priority comes first: 1 (asc), 10 (desc), or what the dependencies speak for',
    ),
    maxAttempts: setting(z.int().min(1).max(1_000).default(3), 'How often a task is tried before it is given up'),
    retrySeconds: setting(z.number().min(0).max(86_400).default(10), 'Pause after the first failure; it doubles'),
    rawGraceSeconds: setting(
      z.number().min(1).max(86_400).default(30),
      'How long a plain client may be silent that took a task from the list',
    ),
    rawLeaseSeconds: setting(
      z.number().min(1).max(604_800).default(3_600),
      'How long one may be silent that has said it works, but cannot send heartbeats',
    ),
    unwritten: setting(
      z.int().min(0).max(1_000).default(256),
      'How many claims and completions may wait, for milliseconds, to be entered in indexes, statistics and audit; 0: none',
    ),
    archiveAfterDays: setting(
      z.number().min(0).max(80).default(1),
      'How long after its end a task is copied to the archive; Redis forgets it 60 to 90 days after its end',
    ),
    archiveKeepDays: setting(
      z.int().min(91).max(36_500).optional(),
      'How long tasks stay in the archive, never less than Redis has them; left out: for ever',
    ),
  }),

  approvals: section('The human gate', {
    policies: setting(
      z.array(REVIEWER_POLICY).max(1_000).default([]),
      'Who must agree to which tasks; as JSON outside the file. More can be added while the daemon runs',
    ),
    criticality: setting(
      z.array(CRITICALITY_ROW).max(10_000).optional(),
      'How critical which resources are; the first row that fits counts. Default: a table for databases, services and secrets',
    ),
    groups: setting(
      z.record(z.string().min(1).max(100), z.array(z.string().min(1).max(128))).default({}),
      'People by group. For policies a group is a role of its members',
    ),
  }),

  files: section('Where long outputs and what undoes a change are kept. With an S3 endpoint and bucket, there', {
    dir: setting(path.optional(), 'Folder for them. Default: files in the data directory', { path: true }),
    inlineBytes: setting(
      z.int().min(256).max(1_048_576).default(40_960),
      'What is longer goes to a file, and Redis keeps its beginning and end',
    ),
    maxBytes: setting(z.int().min(1_024).max(67_108_864).default(8_388_608), 'Longest output or stash that is kept'),
    keepDays: setting(z.number().min(0).max(3_650).default(90), 'How long files are kept'),
    s3: section('An S3-compatible service', {
      endpoint: setting(
        url('https:// or http://', /^https?:\/\//).optional(),
        'Its address, without the bucket: https://s3.eu-central-1.amazonaws.com, http://minio:9000',
      ),
      bucket: setting(
        z
          .string()
          .regex(
            /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
            'must be a bucket name: lower case letters, digits, dots and dashes',
          )
          .optional(),
        'Bucket that is there already',
      ),
      region: setting(z.string().min(1).default('us-east-1'), 'Its region, as requests are signed for', {
        env: ['AWS_REGION'],
      }),
      prefix: setting(
        z
          .string()
          .regex(/^([A-Za-z0-9][A-Za-z0-9._-]*\/)*$/, 'must be empty or end with a slash')
          .default(''),
        'Stands before every key',
      ),
      accessKeyId: setting(z.string().min(1).optional(), 'Key to sign with', { env: ['AWS_ACCESS_KEY_ID'] }),
      secretAccessKey: setting(z.string().min(1).optional(), 'Its secret', {
        env: ['AWS_SECRET_ACCESS_KEY'],
        secret: true,
      }),
    }),
  }),

  notifications: section('How people are told what concerns them', {
    routes: setting(
      z
        .array(NOTIFICATION_ROUTE)
        .max(200)
        .refine((routes) => new Set(routes.map(({ name }) => name)).size === routes.length, 'must have different names')
        .default([]),
      'By which ways who is told of what; as JSON outside the file',
    ),
  }),

  webhooks: section('Sending events and notifications to other programs', {
    allowPrivate: setting(
      z.boolean().default(false),
      'Let webhooks that are made while the daemon runs lead to this machine and to private networks',
    ),
    attempts: setting(z.int().min(1).max(100).default(12), 'How often a delivery is tried before it is given up'),
    timeoutSeconds: setting(z.number().min(1).max(60).default(10), 'How long a receiver may take to answer'),
    retrySeconds: setting(
      z.number().min(0.1).max(3_600).default(5),
      'Pause after the first failure; it doubles, up to an hour',
    ),
    disableAfterHours: setting(
      z.number().min(0.01).max(8_760).default(72),
      'After so long without a success a webhook is switched off',
    ),
    keepDays: setting(z.int().min(1).max(3_650).default(30), 'How long the log of deliveries goes back'),
  }),

  journal: section('What is asked for while Redis is away', {
    most: setting(z.int().min(0).max(1_000_000).default(10_000), 'How many new tasks and results may wait; 0: none'),
  }),

  events: section('The event streams', {
    keep: setting(
      z.int().min(100).default(10_000),
      'About how many entries each stream keeps in Redis, once all consumers and the archive have them',
    ),
    most: setting(
      z.int().min(1_000).default(500_000),
      'How many it may hold while a consumer is behind; beyond it the oldest go unread. About 250 bytes each',
    ),
  }),
});

/** The settings in effect. Two of them have defaults that depend on the machine, and are filled in when loading. */
export type Config = DeepReadonly<z.output<typeof SETTINGS>> & { readonly cacheDir: string; readonly instance: string };

/** One setting, flattened: how each door names it. */
export interface Setting extends SettingMeta {
  readonly name: string;
  readonly flag: string;
  readonly variables: readonly string[];
  readonly description: string;
  readonly schema: SchemaNode;
}

/** The JSON Schema of reeve.yaml, for editors. A section may be there with nothing in it, as in a file of comments. */
export const settingsSchema = (): Record<string, unknown> => ({
  ...z.toJSONSchema(SETTINGS, {
    io: 'input',
    override: ({ jsonSchema }) => {
      if (jsonSchema.type === 'object') Object.assign(jsonSchema, { type: ['object', 'null'] });
    },
  }),
  $id: 'urn:reeve:settings',
  title: 'reeve.yaml',
});

export interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly description?: string;
  readonly type?: string;
  /** Of a list: what each entry is like. */
  readonly items?: SchemaNode;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly env?: readonly string[];
  readonly secret?: boolean | 'url';
  readonly path?: boolean;
}

/** Every setting as a flat list, in the order of the table. */
export function listSettings(node: SchemaNode = settingsSchema(), trail: readonly string[] = []): Setting[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]): Setting[] => {
    const here = [...trail, key];
    if (child.properties) return listSettings(child, here);
    const words = here.flatMap((part) => part.split(/(?=[A-Z])/)).map((word) => word.toLowerCase());
    return [
      {
        name: here.join('.'),
        flag: `--${words.join('-')}`,
        variables: [`REEVE_${words.join('_').toUpperCase()}`, ...(child.env ?? [])],
        description: child.description ?? '',
        schema: child,
        ...(child.secret && { secret: child.secret }),
        ...(child.path && { path: true }),
      },
    ];
  });
}
