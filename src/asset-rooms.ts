import type { Clock } from './clock.ts';
import type { EventLog } from './events/event-log.ts';
import type { Logger } from './log.ts';
import type { Connection } from './redis/connection.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import { Library } from './registry/library.ts';
import { createParsePool } from './registry/parse-pool.ts';
import { Registry } from './registry/registry.ts';
import { parseSchedule } from './schedule.ts';
import { group, type Service, service } from './service.ts';
import type { Config } from './settings.ts';
import { missedDeliveries } from './sync/missed-deliveries.ts';
import { poller } from './sync/poller.ts';
import { type MadeSource, makeSource, sourceSettings, webhookSecrets } from './sync/sources.ts';
import { Sync } from './sync/sync.ts';
import { createWebhook, type Webhook } from './sync/webhook.ts';
import { WriteBack } from './sync/write-back.ts';

export interface AssetRoomsOptions {
  readonly config: Config;
  /** Whether a person named the folder of assets. */
  readonly isDirNamed: boolean;
  readonly connection: Connection;
  readonly mode: KeyspaceOptions['mode'];
  readonly clock: Clock;
  readonly log: Logger;
  readonly fetch: typeof globalThis.fetch;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Who syncs, for people. */
  readonly holder: string;
  readonly events?: EventLog | undefined;
}

/** One source with the registry it fills. */
export interface AssetSourceRoom {
  readonly made: MadeSource;
  readonly registry: Registry;
}

export interface AssetRooms {
  readonly sources: readonly AssetSourceRoom[];
  readonly sync: Sync;
  readonly library: Library;
  readonly writeBack: WriteBack;
  readonly webhook: Webhook;
  /** Polls while it runs; stopping it ends a sync at the next safe place. */
  readonly life: Service;
  /** Ends the parser threads, for those who do not start `life`. */
  close(): Promise<void>;
}

/** Registry and sync, as the settings say. The daemon and `reeve sync` without one build them the same way. */
export function createAssetRooms(options: AssetRoomsOptions): AssetRooms {
  const { config, isDirNamed, connection, mode, clock, log, fetch, env, holder, events } = options;
  const pool = createParsePool();
  const surroundings = { PATH: env.PATH ?? '', HOME: env.HOME ?? '' };
  const sources = sourceSettings(config, isDirNamed).map((settings) => {
    const made = makeSource(settings, config, { fetch, clock, surroundings });
    const { namespace } = made;
    const { guards } = config.assets;
    const keepEvents = config.events.most;
    return {
      made,
      registry: new Registry({ connection, mode, namespace, pool, guards, keepEvents, service: holder }),
    };
  });
  const keysOf = (namespace: string | undefined) => keyspace({ mode, ...(namespace !== undefined && { namespace }) });
  const sync = new Sync({
    sources: sources.map(({ made, registry }) => ({
      named: made,
      registry,
      connection,
      keys: keysOf(made.namespace),
      pool,
      holder,
      quotas: made.client && (() => made.client?.quotas() ?? []),
    })),
    events,
    clock,
    log,
  });
  const webhook = createWebhook({
    sources: sources.flatMap(({ made: { settings, name, namespace } }) => {
      if (!settings.github) return [];
      const secrets = webhookSecrets(settings, config.github);
      return [{ name, repo: settings.github, branch: settings.branch, secrets, keys: keysOf(namespace) }];
    }),
    sync,
    connection,
    log,
  });
  const close = async () => {
    await sync.stop();
    await pool.close();
  };
  const pollers = sources.map(({ made: { name, settings } }) => {
    const schedule = parseSchedule(settings.schedule ?? config.sync.schedule) ?? ({ kind: 'off' } as const);
    return poller({ sync, source: name, schedule, clock, log });
  });
  const repairers = sources.flatMap(({ made: { name, settings, client } }) => {
    const { webhookId } = config.github;
    if (!client?.isLoggedIn || !settings.github || webhookSecrets(settings, config.github).length === 0) return [];
    const hookId = settings.webhookId ?? webhookId;
    return [missedDeliveries({ source: name, repo: settings.github, client, hookId, clock, log })];
  });
  // What stops first waits for a sync that stops last, unless the sync is told to stop as well.
  const life = group('asset sync', [
    service('asset parser', async () => () => pool.close()),
    ...pollers,
    ...repairers,
    service('syncs', async () => () => sync.stop()),
  ]);
  const library = new Library(sources.map(({ made: { name }, registry }) => ({ name, registry })));
  const writeBack = new WriteBack({ sources: sources.map(({ made }) => made), sync, clock });
  return { sources, sync, library, writeBack, webhook, life, close };
}
