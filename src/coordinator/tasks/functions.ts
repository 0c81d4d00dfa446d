import { type Clock, jittered } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { functionLibrary, type Library } from '../../redis/function-library.ts';
import { RESERVED_IDS } from '../../redis/ids.ts';
import type { KeyspaceOptions } from '../../redis/keys.ts';
import type { ScriptSurroundings } from '../../redis/script.ts';
import { every, type Service } from '../../service.ts';
import { GENERAL, TYPE_RULES } from '../agents/matcher.ts';
import { LEASE_CLASSES } from '../locks/lock.ts';
import type { Locks } from '../locks/locks.ts';
import { beat, claim, complete, drop, fail, report } from './scripts.ts';
import type { TaskStore } from './task-store.ts';
import { CANDIDATES, MAX_ROUNDS, type WorkLimits } from './work.ts';

export interface FunctionsOptions {
  readonly store: TaskStore;
  readonly locks: Locks;
  readonly keyspace: KeyspaceOptions;
  readonly limits: () => WorkLimits;
  readonly context: () => ScriptSurroundings;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Kept = 'loaded' | 'there' | 'not supported' | 'taken by another project';

const PERIOD_MS = 5_000;

/** What the functions of a project are called: `FCALL odyssey_claim 0 ann`. A name of a function has no hyphens. */
export const functionPrefix = (project: string): string => project.replaceAll('-', '_');

/** Keeps the verbs of an agent in the server as Redis Functions: loaded when missing, anew when a setting they know changed. */
export class TaskFunctions {
  readonly #options: FunctionsOptions;
  #made: { readonly from: string; readonly library: Library } | undefined;
  #loaded = '';

  constructor(options: FunctionsOptions) {
    this.#options = options;
  }

  service(): Service {
    const { clock, log } = this.#options;
    let isTold = false;
    return every('task functions', {
      clock,
      pauseMs: () => jittered(PERIOD_MS),
      tick: async () => {
        const kept = await this.once();
        if (kept === 'loaded') log.info('functions loaded', { try: `redis-cli FCALL ${this.#prefix}_help 0` });
        if (kept === 'taken by another project' && !isTold) {
          isTold = true;
          log.warn('no functions for redis-cli: another project has their names', { prefix: this.#prefix });
        }
      },
      // A user that may not load functions does without them; nothing else needs them.
      onError: (error) => {
        if (!isTold) log.warn('no functions for redis-cli', { problem: reason(error) });
        isTold = true;
      },
    });
  }

  /** Looks whether they are there, and loads them if not. The daemon that started last decides what they say. */
  async once(): Promise<Kept> {
    const { connection, project } = this.#options.store;
    if (connection.server.major < 7) return 'not supported';
    const redis = connection.commands;
    const library = await this.library();
    const found = (await redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', library.name)) as unknown[];
    if (found.length > 0 && !JSON.stringify(found).includes(` for ${project} `)) return 'taken by another project';
    if (found.length > 0 && this.#loaded === library.digest) return 'there';
    await redis.call('FUNCTION', 'LOAD', 'REPLACE', library.code);
    this.#loaded = library.digest;
    return 'loaded';
  }

  async library(): Promise<Library> {
    const { keyspace, context } = this.#options;
    const terms = await this.#terms();
    const from = JSON.stringify([terms, context()]);
    if (this.#made?.from !== from) {
      const scripts = { claim, beat, report, complete, fail, drop };
      const name = `reeve_${this.#prefix}`;
      const library = functionLibrary({
        name,
        prefix: this.#prefix,
        file: new URL('./lua/functions.lua', import.meta.url),
        scripts,
        terms,
        keyspace,
        context: context(),
      });
      this.#made = { from, library };
    }
    return this.#made.library;
  }

  get #prefix(): string {
    return functionPrefix(this.#options.store.project);
  }

  async #terms() {
    const { store, locks, limits, version } = this.#options;
    const { extend_us, extend_agent_us } = await locks.renewal();
    const { rawGraceMs, retryMs, maxAttempts } = limits();
    const { process, agent } = LEASE_CLASSES;
    return {
      common: store.common(),
      raw_us: rawGraceMs * 1000,
      lease: { process: process.leaseMs * 1000, agent: agent.leaseMs * 1000 },
      extend: { process: extend_us, agent: extend_agent_us },
      delay_us: retryMs * 1000,
      max_attempts: maxAttempts,
      limit: CANDIDATES,
      rounds: MAX_ROUNDS,
      types: TYPE_RULES.map(({ type }) => type),
      general: GENERAL,
      reserved: Object.fromEntries([...RESERVED_IDS].map((word) => [word, true])),
      version: `reeve ${version} for ${store.project}`,
    };
  }
}
