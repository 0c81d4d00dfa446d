import { z } from 'zod';
import type { Clock } from '../clock.ts';
import type { EventLog } from '../events/event-log.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import {
  FLAG_NAMES,
  FLAGS,
  type FlagName,
  LIVE_NAMES,
  LIVE_SETTINGS,
  type LiveName,
  type LiveValues,
} from './live-table.ts';
import { changeSetting } from './scripts.ts';

export interface LiveSettingsOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the file says; a value in Redis wins over it. */
  readonly fromFile?: Partial<LiveValues>;
}

/** How a live value came about. A value in Redis that cannot be used is told of, and the one below it is in force. */
export interface LiveState<N extends string, V> {
  readonly name: N;
  readonly value: V;
  readonly source: 'redis' | 'file' | 'default';
  readonly says: string;
  readonly problem?: string;
}

type Snapshot = {
  readonly settings: { readonly [N in LiveName]: LiveState<N, LiveValues[N]> };
  readonly flags: { readonly [F in FlagName]: LiveState<F, boolean> };
};

/** Asked on hot paths, so that one reading serves a second of calls. */
const FRESH_MS = 1_000;

/** `ade:config:*` and `ade:feature:*`: anyone may change them, with reeve or with redis-cli, while the daemon runs. */
export class LiveSettings {
  readonly #options: LiveSettingsOptions;
  #latest: { readonly at: number; readonly read: Promise<Snapshot> } | undefined;
  readonly #complaints = new Map<string, string>();

  constructor(options: LiveSettingsOptions) {
    this.#options = options;
  }

  async get<N extends LiveName>(name: N): Promise<LiveValues[N]> {
    return (await this.#recent()).settings[name].value;
  }

  async isEnabled(flag: FlagName): Promise<boolean> {
    return (await this.#recent()).flags[flag].value;
  }

  async settings(): Promise<readonly LiveState<LiveName, LiveValues[LiveName]>[]> {
    const { settings } = await this.#read();
    return LIVE_NAMES.map((name) => settings[name]);
  }

  async flags(): Promise<readonly LiveState<FlagName, boolean>[]> {
    const { flags } = await this.#read();
    return FLAG_NAMES.map((name) => flags[name]);
  }

  /** What is wrong with a value, in words; undefined if it may be set. */
  problemWith(name: LiveName, value: unknown): string | undefined {
    const parsed = LIVE_SETTINGS[name].schema.safeParse(value);
    return parsed.success ? undefined : z.prettifyError(parsed.error).replaceAll('✖ ', '').replaceAll('\n', ' ');
  }

  /** Takes effect here at once, in other daemons within a second. Undefined goes back to the file or the default. */
  async set(name: LiveName, value: unknown, by: string): Promise<LiveState<LiveName, LiveValues[LiveName]>> {
    const text = value === undefined ? '' : JSON.stringify(value);
    await this.#write(this.#options.keys.config(name), text, 'config:changed', { name, to: text, by });
    return (await this.#read()).settings[name];
  }

  async setFlag(flag: FlagName, value: boolean | undefined, by: string): Promise<LiveState<FlagName, boolean>> {
    const text = value === undefined ? '' : value ? 'enabled' : 'disabled';
    await this.#write(this.#options.keys.feature(flag), text, 'flag:changed', { name: flag, to: text, by });
    return (await this.#read()).flags[flag];
  }

  async #write(setting: string, value: string, event: 'config:changed' | 'flag:changed', payload: Changed) {
    const { connection, scripts, events } = this.#options;
    if (connection.mode === 'cluster') {
      // Setting and stream live in different slots there: the change first, then its event.
      const from = (await connection.commands.get(setting)) ?? '';
      if (value === '') await connection.commands.del(setting);
      else await connection.commands.set(setting, value);
      await events.append(event, { ...payload, from });
    } else {
      await scripts.run(changeSetting, { setting, events: events.key('system') }, { value, event, payload });
    }
    this.#latest = undefined;
  }

  #recent(): Promise<Snapshot> {
    const now = this.#options.clock.now();
    if (this.#latest && now - this.#latest.at < FRESH_MS) return this.#latest.read;
    const read = this.#read();
    this.#latest = { at: now, read };
    // A failure is told to those who asked, and not kept for those who ask next.
    read.catch(() => {
      this.#latest = undefined;
    });
    return read;
  }

  async #read(): Promise<Snapshot> {
    const { connection, keys } = this.#options;
    const [settings, flags] = await Promise.all([
      Promise.all(LIVE_NAMES.map((name) => connection.commands.get(keys.config(name)))),
      Promise.all(FLAG_NAMES.map((name) => connection.commands.get(keys.feature(name)))),
    ]);
    return {
      settings: Object.fromEntries(LIVE_NAMES.map((name, at) => [name, this.#setting(name, settings[at])])),
      flags: Object.fromEntries(FLAG_NAMES.map((name, at) => [name, this.#flag(name, flags[at])])),
    } as Snapshot;
  }

  #setting(name: LiveName, text: string | null | undefined): LiveState<LiveName, LiveValues[LiveName]> {
    const { fallback, says } = LIVE_SETTINGS[name];
    const file = this.#options.fromFile?.[name];
    const below = { name, value: file ?? fallback, source: file === undefined ? 'default' : 'file', says } as const;
    if (text === null || text === undefined) return this.#fine(name, below);
    const value = jsonOr(text);
    const problem = this.problemWith(name, value);
    if (problem) return this.#complain(name, text, problem, below);
    return this.#fine(name, { ...below, value: value as LiveValues[LiveName], source: 'redis' });
  }

  #flag(name: FlagName, text: string | null | undefined): LiveState<FlagName, boolean> {
    const { fallback, says } = FLAGS[name];
    const below = { name, value: fallback, source: 'default', says } as const;
    if (text === null || text === undefined) return this.#fine(name, below);
    if (text !== 'enabled' && text !== 'disabled') {
      return this.#complain(name, text, 'must be enabled or disabled', below);
    }
    return this.#fine(name, { ...below, value: text === 'enabled', source: 'redis' });
  }

  #fine<S>(name: string, state: S): S {
    this.#complaints.delete(name);
    return state;
  }

  /** Once for each bad value, not once a second. */
  #complain<S extends { readonly value: unknown }>(name: string, text: string, problem: string, below: S) {
    if (this.#complaints.get(name) !== text) {
      this.#complaints.set(name, text);
      const fields = { name, found: text.slice(0, 100), problem, used: below.value };
      this.#options.log.warn('a live setting cannot be used', fields);
    }
    return { ...below, problem: `${JSON.stringify(text.slice(0, 100))} in Redis cannot be used: ${problem}` };
  }
}

interface Changed {
  readonly name: string;
  readonly to: string;
  readonly by: string;
}

/** A number, a list or an object is written as JSON; anything else is itself. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
