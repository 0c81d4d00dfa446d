import { createRequire } from 'node:module';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { keysPage } from '../../scripts/docs/keys.ts';
import { ReeveError } from '../../src/errors.ts';
import {
  type AgentId,
  approvalId,
  encodeId,
  ID_RULES,
  type IdKind,
  type IdRule,
  isId,
  parseId,
} from '../../src/redis/ids.ts';
import { ADE_APPROVAL_KEYS } from '../../src/redis/key-table/ade-approvals.ts';
import { ADE_LOCK_KEYS } from '../../src/redis/key-table/ade-locks.ts';
import { ADE_SYSTEM_KEYS } from '../../src/redis/key-table/ade-system.ts';
import { ADE_TASK_KEYS } from '../../src/redis/key-table/ade-tasks.ts';
import { ASSET_KEYS } from '../../src/redis/key-table/assets.ts';
import { COORDINATION_KEYS } from '../../src/redis/key-table/coordination.ts';
import { type KeyRow, spelling } from '../../src/redis/key-table.ts';
import {
  explainKey,
  KEY_NAMES,
  KEY_TABLE,
  type KeyName,
  type KeyspaceOptions,
  keyReader,
  keyspace,
  luaKey,
  luaKeyspace,
} from '../../src/redis/keys.ts';
import { startTestRedis } from '../support/redis.ts';
import { undeclaredKeys } from '../support/undeclared-keys.ts';

/** The very function by which ioredis finds the node of a key; it comes without types. */
const slotOf = createRequire(import.meta.resolve('ioredis'))('cluster-key-slot') as (key: string) => number;

const MODES = ['standalone', 'cluster'] as const;
const SPACES: readonly KeyspaceOptions[] = MODES.flatMap((mode) => [
  { mode },
  { mode, project: 'web-shop', namespace: 'team_a' },
]);
const plain = keyspace({ mode: 'standalone' });
const cluster = keyspace({ mode: 'cluster' });

const rowOf = (name: KeyName): KeyRow => KEY_TABLE[name];
const paramsOf = (name: KeyName): IdKind[] =>
  [
    ...rowOf(name)
      .pattern.replace(/^<project>/, '')
      .matchAll(/<(\w+)>/g),
  ].map((match) => match[1] as IdKind);
const build = (options: KeyspaceOptions, name: KeyName, parts: readonly string[]): string =>
  (keyspace(options) as unknown as Record<KeyName, (...parts: readonly string[]) => string>)[name](...parts);

/** Valid ids, one of each kind. Approval ids name their task, as Cluster mode demands. */
type Ids = Readonly<Record<IdKind, string>>;
const idOf = (kind: IdKind): fc.Arbitrary<string> => {
  const rule: IdRule = ID_RULES[kind];
  if (kind === 'approval') {
    return fc.tuple(idOf('task'), fc.nat(999_999_999)).map(([task, number]) => approvalId(task, number));
  }
  if (rule.encoded) {
    const text = fc.string({ minLength: 1, maxLength: 30, unit: 'binary' }).filter((raw) => !/\p{Cc}/u.test(raw));
    return text.map((raw) => encodeId(kind as 'resource', raw));
  }
  return fc.stringMatching(new RegExp(`^(?:${rule.form})$`)).filter((id) => isId(kind, id));
};
const ids = fc.record(
  Object.fromEntries((Object.keys(ID_RULES) as IdKind[]).map((kind) => [kind, idOf(kind)])),
) as unknown as fc.Arbitrary<Ids>;
const partsFrom = (name: KeyName, from: Ids) => paramsOf(name).map((kind) => from[kind]);

describe('the table', () => {
  test('joins its files without losing a row to an equal name', () => {
    const files = [ASSET_KEYS, COORDINATION_KEYS, ADE_LOCK_KEYS, ADE_APPROVAL_KEYS, ADE_TASK_KEYS, ADE_SYSTEM_KEYS];
    expect(files.flatMap((file) => Object.keys(file)).sort()).toEqual([...KEY_NAMES].sort());
  });

  test('has a rule for every variable, and the same variables in both modes', () => {
    const variables = (text: string) => new Set([...text.matchAll(/<(\w+)/g)].map((match) => match[1] as string));
    for (const name of KEY_NAMES) {
      const [inPlain, inCluster] = MODES.map((mode) => variables(spelling(rowOf(name), mode)));
      expect({ name, variables: inCluster }).toEqual({ name, variables: inPlain });
      expect(Object.keys(ID_RULES)).toEqual(expect.arrayContaining([...(inPlain ?? [])]));
    }
  });

  test('ties a lifetime only to rows that exist', () => {
    const tied = KEY_NAMES.map((name) => rowOf(name).ttl).flatMap((ttl) => (ttl.kind === 'with' ? [ttl.row] : []));
    expect(KEY_NAMES).toEqual(expect.arrayContaining(tied));
  });

  test('keeps the lifetimes that are prescribed', () => {
    const seconds = (name: KeyName) => {
      const { ttl } = rowOf(name);
      return ttl.kind === 'seconds' || ttl.kind === 'trimmed' ? ttl.seconds : ttl.kind;
    };
    expect(seconds('taskLock')).toBe(30);
    expect(seconds('resourceLock')).toBe(30);
    expect(seconds('waitFor')).toBe(300);
    expect(seconds('agent')).toBe(86_400);
    expect(seconds('session')).toBe(86_400);
    expect(seconds('taskState')).toBe(7_776_000);
    expect(seconds('taskPreview')).toBe(604_800);
    expect(seconds('rateLimit')).toBe(60);
    expect(rowOf('events').ttl).toEqual({ kind: 'trimmed', entries: 10_000, seconds: 604_800 });
    expect(rowOf('approvalRequest').ttl).toEqual({ kind: 'with', row: 'taskState' });
    expect(rowOf('assetMetadata').ttl).toEqual({ kind: 'none' });
  });

  test('appears in full in docs/keys.md', () => {
    const page = keysPage();
    for (const name of KEY_NAMES) {
      for (const mode of MODES) {
        expect(page).toContain(`\`${spelling(rowOf(name), mode).replace(/^(\{?)<project>(?=\}?:)/, '$1odyssey')}\``);
      }
    }
  });
});

describe('builders', () => {
  const uuid = '550e8400-e29b-41d4-a716-446655440000';
  test.each([
    [plain.assetMetadata('google_search'), 'asset:metadata:google_search'],
    [plain.assetCategory('tool'), 'asset:category:tool'],
    [plain.assetIndex(), 'asset:index'],
    [plain.assetSyncState(), 'asset:sync:state'],
    [plain.assetSyncChanged(), 'asset:sync:changed'],
    [plain.assetSearchIndex(), 'asset:search:index'],
    [plain.projectConfig('odyssey'), 'project:config:odyssey'],
    [plain.mirrorQueue(), 'task:queue:pending'],
    [plain.mirrorStatus('TASK-001'), 'task:status:TASK-001'],
    [plain.taskQueue(), 'odyssey:task:queue'],
    [plain.taskStatus('TASK-001'), 'odyssey:task:TASK-001:status'],
    [plain.taskResult('TASK-001'), 'odyssey:task:TASK-001:result'],
    [plain.taskDependencies('TASK-019'), 'odyssey:task:TASK-019:dependencies'],
    [plain.errorList(), 'odyssey:errors:list'],
    [plain.progress(), 'odyssey:progress'],
    [plain.agent('agent-001'), 'odyssey:agent:agent-001'],
    [plain.coordinationEvents(), 'odyssey:events'],
    [plain.taskLock(uuid), `ade:lock:task:${uuid}`],
    [plain.taskLockQueue(uuid), `ade:lock:task:${uuid}:queue`],
    [plain.taskLockChannel('123'), 'ade:lock:task:123:channel'],
    [plain.resourceLock('database', 'prod-db-01'), 'ade:lock:resource:database:prod-db-01'],
    [plain.resourceLock('service', 'api-gateway'), 'ade:lock:resource:service:api-gateway'],
    [plain.agentCapacity('agent-123'), 'ade:lock:agent:agent-123:capacity'],
    [plain.agentLocks('agent-123'), 'ade:lock:index:agent:agent-123'],
    [plain.resourceLocks('database'), 'ade:lock:index:resource:database'],
    [plain.lockRegistry(), 'ade:lock:registry'],
    [plain.waitFor('agent-123'), 'ade:lock:waitfor:agent-123'],
    [plain.deadlockCheck('agent-123'), 'ade:lock:deadlock:check:agent-123'],
    [plain.approvalRequest('app-123'), 'ade:approval:request:app-123'],
    [plain.userApprovalQueue('user-789'), 'ade:approval:queue:user:user-789'],
    [plain.approvalIndex('task-456'), 'ade:approval:index:task:task-456'],
    [plain.approvalQueue(), 'ade:approval:queue:global'],
    [plain.userApprovalStats('user-789'), 'ade:approval:stats:user:user-789'],
    [plain.taskApprovalStats('task-456'), 'ade:approval:stats:task:task-456'],
    [plain.delegation('user-123', 'policy-456'), 'ade:approval:delegation:user-123:policy-456'],
    [plain.delegationIndex('user-123'), 'ade:approval:delegation:index:user-123'],
    [plain.taskState('task-123'), 'ade:task:task-123:state'],
    [plain.taskData('task-123'), 'ade:task:task-123:data'],
    [plain.taskConfig('task-123'), 'ade:task:task-123:config'],
    [plain.taskMetadata('task-123'), 'ade:task:task-123:metadata'],
    [plain.taskExecution('task-123'), 'ade:task:task-123:execution'],
    [plain.taskPreview('task-123'), 'ade:task:task-123:preview'],
    [plain.taskRisk('task-123'), 'ade:task:task-123:risk'],
    [plain.tasksByState('DRAFT'), 'ade:task:index:state:DRAFT'],
    [plain.tasksByState('REVIEWING'), 'ade:task:index:state:REVIEWING'],
    [plain.tasksByAuthor('user-001'), 'ade:task:index:author:user-001'],
    [plain.tasksByResource('database', 'prod-db-01'), 'ade:task:index:resource:database:prod-db-01'],
    [plain.tasksByTag('urgent'), 'ade:task:index:tag:urgent'],
    [plain.session('s-1'), 'ade:session:s-1'],
    [plain.userSessions('user-123'), 'ade:session:index:user:user-123'],
    [plain.rateLimit('tasks:create', 'user-123'), 'ade:ratelimit:tasks:create:user-123'],
    [plain.rateLimit('approvals:respond', 'user-456'), 'ade:ratelimit:approvals:respond:user-456'],
    [plain.lockRateLimit('agent-123'), 'ade:ratelimit:lock:acquire:agent-123'],
    [plain.events('task'), 'ade:events:task'],
    [plain.events('approval'), 'ade:events:approval'],
    [plain.events('lock'), 'ade:events:lock'],
    [plain.eventConsumers('task'), 'ade:events:task:consumers'],
    [plain.systemEvents(), 'ade:events:system'],
    [plain.jobQueue('lock_cleanup'), 'ade:job:queue:lock_cleanup'],
    [plain.jobQueue('deadlock_detect'), 'ade:job:queue:deadlock_detect'],
    [plain.scheduledJobs(), 'ade:job:scheduled'],
    [plain.jobLock('job-1'), 'ade:job:lock:job-1'],
    [plain.config('lock:default_ttl'), 'ade:config:lock:default_ttl'],
    [plain.config('risk:thresholds'), 'ade:config:risk:thresholds'],
    [plain.feature('auto_approve_low_risk'), 'ade:feature:auto_approve_low_risk'],
    [cluster.taskState('123'), 'ade:{task:123}:state'],
    [cluster.taskData('123'), 'ade:{task:123}:data'],
    [cluster.taskExecution('123'), 'ade:{task:123}:execution'],
    [cluster.taskLock('123'), 'ade:lock:task:{task:123}'],
    [cluster.approvalIndex('123'), 'ade:approval:index:task:{task:123}'],
    [cluster.approvalRequest('123.4'), 'ade:approval:request:{task:123}:4'],
    [cluster.taskLockWaiters('123'), 'ade:lock:task:{task:123}:waiters'],
    [cluster.resourceLock('database', 'prod-db-01'), 'ade:lock:resource:{resource:database:prod-db-01}'],
    [cluster.agentCapacityLeases('a'), 'ade:lock:agent:{agent:a}:capacity:leases'],
    [cluster.userApprovalQueue('u'), 'ade:approval:queue:user:{user:u}'],
    [cluster.lockRegistry(), 'ade:lock:registry'],
    [cluster.taskStatus('TASK-001'), '{odyssey}:task:TASK-001:status'],
    [cluster.assetMetadata('google_search'), '{asset}:metadata:google_search'],
  ])('spell %s', (built, expected) => expect(built).toBe(expected));

  test('take project and namespace from the keyspace', () => {
    const options = { project: 'web', namespace: 'ours' };
    const [one, many] = [keyspace({ mode: 'standalone', ...options }), keyspace({ mode: 'cluster', ...options })];
    expect(one.taskStatus('T-1')).toBe('web:task:T-1:status');
    expect(many.taskStatus('T-1')).toBe('{web}:task:T-1:status');
    expect(one.assetIndex()).toBe('asset:ns:ours:index');
    expect(many.assetIndex()).toBe('{asset:ours}:index');
  });

  test.each(['ade', 'asset', 'task', 'project', 'a.b', 'a:b', ''])('refuse %j as a project', (project) => {
    expect(() => keyspace({ mode: 'standalone', project })).toThrow(ReeveError);
  });

  test('take exactly the parts their pattern names, each of its own kind', () => {
    const agent: AgentId = parseId('agent', 'ann');
    // @ts-expect-error a task lock needs a task
    expect(() => plain.taskLock()).toThrow(ReeveError);
    // @ts-expect-error a resource lock needs a type and an id
    expect(() => plain.resourceLock('database')).toThrow(ReeveError);
    // @ts-expect-error the registry has no parts
    plain.lockRegistry('one');
    // @ts-expect-error an agent is no task
    plain.taskLock(agent);
    expect(plain.waitFor(agent)).toBe('ade:lock:waitfor:ann');
  });

  test('in Cluster mode want approval ids that name their task', () => {
    expect(() => cluster.approvalRequest('app-123')).toThrow(ReeveError);
    expect(() => cluster.approvalRequest('queue.1')).toThrow(ReeveError);
  });

  const BAD = [
    'a:b',
    '123:queue',
    'a{b',
    'a}b',
    'a b',
    'a\r\nb',
    'a\n',
    'a\0',
    '*',
    'a*',
    '..',
    '',
    '🙂',
    '-a',
    '.a',
    '/',
    'a'.repeat(10_000),
    '__proto__',
    "'] redis.call('FLUSHALL",
    '%',
    '%2f',
    '%41',
    '\ud800',
    '{}',
    'é',
  ];
  test.each(BAD)('refuse %j in every place of every key, before anything reaches Redis', (bad) => {
    const [valid] = fc.sample(ids, { numRuns: 1, seed: 1 }) as [Ids];
    for (const name of KEY_NAMES) {
      const parts = partsFrom(name, valid);
      for (const at of parts.keys()) {
        const refusal = expect.objectContaining({ code: 'INVALID_ID' });
        expect(() => build({ mode: 'standalone' }, name, parts.with(at, bad))).toThrow(refusal);
      }
    }
  });

  test.each(['index', 'queue', 'registry', 'global', 'constructor', 'toString'])(
    'refuse the reserved word %s',
    (word) => {
      expect(() => plain.taskState(word)).toThrow(ReeveError);
      expect(() => plain.agent(word)).toThrow(ReeveError);
      expect(() => plain.delegation(word, 'policy-1')).toThrow(ReeveError);
      expect(() => plain.session(word)).toThrow(ReeveError);
    },
  );
});

describe('no key belongs to two rows', () => {
  /**
   * The proof is by structure. No id contains a colon or a brace, so a key falls apart at these in one way only, and two
   * patterns can give one key only if they fall apart alike and each pair of tokens can be equal: two literals if they
   * are the same, a literal and a variable if the variable may take it, two variables (to be on the safe side) always.
   * Closed lists, whose words may contain colons, are written out; project and namespace stay variable, so the proof
   * holds across projects and namespaces that share a Redis.
   */
  interface Shape {
    readonly name: KeyName;
    readonly tokens: readonly string[];
  }

  const alternatives = (text: string): string[] => {
    const closed = /<(\w+)>/g;
    for (const [variable, kind] of text.matchAll(closed)) {
      const { words }: IdRule = ID_RULES[kind as IdKind];
      if (words) return words.flatMap((word) => alternatives(text.replace(variable, word)));
    }
    return [text];
  };
  const shapes = (mode: (typeof MODES)[number]): Shape[] =>
    KEY_NAMES.flatMap((name) => {
      const text = spelling(rowOf(name), mode);
      const elsewhere = text.replace('asset', mode === 'cluster' ? 'asset:<namespace>' : 'asset:ns:<namespace>');
      const texts = rowOf(name).slot === 'asset' ? [text, elsewhere] : [text];
      return texts
        .flatMap(alternatives)
        .map((spelt) => ({ name, tokens: spelt.split(/([:{}])/).filter((token) => token !== '') }));
    });
  const variable = (token: string) => /^<(?:\w+\.)?(\w+)>$/.exec(token)?.[1];
  const mayTake = (kind: string, literal: string) =>
    kind === 'number' ? /^[0-9]+$/.test(literal) : isId(kind as IdKind, literal);
  const mayEqual = (a: string, b: string): boolean => {
    const [kindA, kindB] = [variable(a), variable(b)];
    if (kindA && kindB) return true;
    if (kindA) return mayTake(kindA, b);
    return kindB ? mayTake(kindB, a) : a === b;
  };
  const overlap = (a: Shape, b: Shape) =>
    a.tokens.length === b.tokens.length && a.tokens.every((token, at) => mayEqual(token, b.tokens[at] as string));

  test.each(MODES)('in %s mode, for all pairs of rows and all valid ids', (mode) => {
    const all = shapes(mode);
    // What the proof rests on: a variable fills the space between two separators.
    const half = all.filter(({ tokens }) => tokens.some((token) => token.includes('<') && !variable(token)));
    expect(half).toEqual([]);
    const clashes = all.flatMap((a, at) =>
      all
        .slice(at + 1)
        .filter((b) => overlap(a, b))
        .map((b) => [a.name, b.name]),
    );
    expect(clashes).toEqual([]);
  });

  test('and the proof would notice one', () => {
    const shape = (text: string): Shape => ({
      name: 'taskLock',
      tokens: text.split(/([:{}])/).filter((t) => t !== ''),
    });
    expect(overlap(shape('x:<resource>:y'), shape('x:index:y'))).toBe(true);
    expect(overlap(shape('x:<task>:y'), shape('x:index:y'))).toBe(false);
    expect(overlap(shape('x:<task>:<agent>'), shape('x:<user>:y'))).toBe(true);
    expect(overlap(shape('x:<task>'), shape('x:<task>:y'))).toBe(false);
  });

  test.each(SPACES)('each key is explained by its own row, with its own ids: %j', (options) => {
    const read = keyReader(options);
    fc.assert(
      fc.property(ids, fc.constantFrom(...KEY_NAMES), (valid, name) => {
        const parts = Object.fromEntries(paramsOf(name).map((kind) => [kind, valid[kind]]));
        expect(read(build(options, name, partsFrom(name, valid)))).toEqual({ name, parts });
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    'ade:lock:task:a:b',
    'ade:lock:task:',
    'ade:task:index:state',
    'ade:config:anything',
    'ade:ratelimit:tasks:delete:u',
    'odyssey:task:queue:x',
    'web:task:queue',
    'asset:metadata:a.b',
    'lock:task:1',
    '',
    'ade:lock:resource:file:a%2fb',
    'ade:task:T-1:state\n',
    'ade:{task:1}:state',
    'ade:events:sync',
  ])('%j is explained by none', (key) => expect(explainKey(key, { mode: 'standalone' })).toBeUndefined());
});

describe('in a Cluster', () => {
  const slotsOf = (names: readonly KeyName[], valid: Ids) =>
    new Set(names.map((name) => slotOf(build({ mode: 'cluster' }, name, partsFrom(name, valid)))));
  const group = (slot: KeyRow['slot']) => KEY_NAMES.filter((name) => rowOf(name).slot === slot);

  test.each(['task', 'resource', 'agent', 'user', 'project', 'asset'] as const)(
    'all keys of one %s lie in one slot',
    (slot) => {
      fc.assert(
        fc.property(ids, (valid) => {
          const same = { ...valid, approval: approvalId(valid.task, 7) };
          expect(slotsOf(group(slot), same).size).toBe(1);
        }),
        { numRuns: 100 },
      );
    },
  );

  test('the slot is the one that the braces name, and no other', () => {
    expect(slotsOf(group('task'), { task: '123', approval: '123.1' } as Ids)).toEqual(new Set([slotOf('task:123')]));
    expect(slotOf(cluster.taskLock('123'))).toBe(6485);
    expect(group('own').filter((name) => /[{}]/.test(spelling(rowOf(name), 'cluster')))).toEqual([]);
  });
});

describe('in Redis', () => {
  let redis: Redis;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const server = await startTestRedis();
    redis = server.client();
    stop = () => server.stop();
  });
  afterEach(() => redis.flushall());
  afterAll(() => stop());

  const CALL = `
local made = {}
for at, call in ipairs(cjson.decode(ARGV[1])) do made[at] = key[call[1]](unpack(call[2])) end
return made`;
  test.each(SPACES)('Lua spells every key as TypeScript does: %j', async (options) => {
    const lua = luaKeyspace(options, KEY_NAMES) + CALL;
    const property = fc.asyncProperty(ids, async (valid) => {
      const calls = KEY_NAMES.map((name) => [name, partsFrom(name, valid)] as const);
      const made = await redis.eval(lua, 0, JSON.stringify(calls));
      expect(made).toEqual(calls.map(([name, parts]) => build(options, name, parts)));
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test.each(SPACES)('and so it does where the key is written out in place: %j', async (options) => {
    const property = fc.asyncProperty(ids, async (valid) => {
      const calls = KEY_NAMES.map((name) => [name, partsFrom(name, valid)] as const);
      const given = calls.flatMap(([, parts]) => parts);
      let at = 0;
      const texts = calls.map(([name, parts]) =>
        luaKey(
          options,
          name,
          parts.map(() => `ARGV[${++at}]`),
        ),
      );
      const made = await redis.eval(`return { ${texts.join(', ')} }`, 0, ...given);
      expect(made).toEqual(calls.map(([name, parts]) => build(options, name, parts)));
    });
    await fc.assert(property, { numRuns: 10 });
  });

  test('Lua gets only the builders that were asked for', () => {
    expect(luaKeyspace({ mode: 'standalone' }, ['taskLock', 'lockRegistry'])).toBe(
      [
        'local key = {}',
        "key.taskLock = function(task) return 'ade:lock:task:' .. task end",
        "key.lockRegistry = function() return 'ade:lock:registry' end",
      ].join('\n'),
    );
  });

  test('finds keys that no row explains, and keys of the wrong type', async () => {
    await redis.hset(plain.taskLock('T-1'), 'holder_agent_id', 'ann');
    await redis.set(plain.taskState('T-1'), 'DRAFT');
    expect(await undeclaredKeys(redis)).toEqual([]);

    await redis.set('ade:lock:task:a:b', '1');
    await redis.set(plain.lockRegistry(), '1');
    await redis.set(plain.taskLockChannel('T-1'), '1');
    await redis.set('web:progress', '1');
    expect(await undeclaredKeys(redis)).toEqual([
      'ade:lock:registry: is a string, lockRegistry is a zset',
      'ade:lock:task:T-1:channel: is a string, taskLockChannel is a channel',
      'ade:lock:task:a:b: no row explains it',
      'web:progress: no row explains it',
    ]);
    const spaces = [{ mode: 'standalone' }, { mode: 'standalone', project: 'web' }] as const;
    expect(await undeclaredKeys(redis, ...spaces)).toContain('web:progress: is a string, progress is a hash');
  });
});
