import type { Connection } from '../../redis/connection.ts';
import { adeTaskId, DEFAULT_PROJECT } from '../../redis/ids.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../../redis/keys.ts';
import type { Scripts } from '../../redis/script.ts';
import { LEASE_CLASSES } from '../locks/lock.ts';
import { GRAPH_FIELDS, type KnownTask, knownTask } from './task-graph.ts';

export interface TaskStoreOptions {
  readonly connection: Connection;
  readonly keyspace: KeyspaceOptions;
  readonly scripts: Scripts;
  /** How many ready tasks the public list shows. */
  readonly window: () => number;
  /** Whether it shows only tasks that can run side by side. */
  readonly isExclusive?: () => boolean;
  /** How many steps of the usual case may be left to be written up. */
  readonly unwritten?: () => number;
}

/** What all parts of the task room have in common: its keys, its scripts, and what those are told in every call. */
export class TaskStore {
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly connection: Connection;
  readonly project: string;
  readonly #window: () => number;
  readonly #isExclusive: () => boolean;
  readonly #unwritten: () => number;
  #bring = async (): Promise<void> => {};

  constructor(options: TaskStoreOptions) {
    const { connection, keyspace: spelling, scripts, window, isExclusive = () => false, unwritten = () => 0 } = options;
    this.keys = keyspace(spelling);
    this.scripts = scripts;
    this.connection = connection;
    this.project = spelling.project ?? DEFAULT_PROJECT;
    this.#window = window;
    this.#isExclusive = isExclusive;
    this.#unwritten = unwritten;
  }

  get isDefaultProject(): boolean {
    return this.project === DEFAULT_PROJECT;
  }

  /** What stands before a task's id in ADE. */
  get head(): string {
    return this.isDefaultProject ? '' : `${this.project}.`;
  }

  /** Who brings up to date what is read here; see Ledger. */
  keepCurrent(bring: () => Promise<void>): void {
    this.#bring = bring;
  }

  /** Before anything is read that follows from claims and completions, rather than being written with them. */
  current(): Promise<void> {
    return this.#bring();
  }

  /** How many steps of the usual case may be left to be written up. */
  get unwritten(): number {
    return this.#unwritten();
  }

  /** The arguments that every script takes. */
  common(agent = '', lockId = '') {
    return {
      head: this.head,
      agent,
      lock_id: lockId,
      publish: 'PUBLISH',
      grace_us: LEASE_CLASSES.agent.graceMs * 1000,
      window: this.#window(),
      exclusive: Number(this.#isExclusive()),
    };
  }

  /** What a script is told that keeps the public list. */
  list() {
    return { head: this.head, window: this.#window(), exclusive: Number(this.#isExclusive()) };
  }

  adeId(task: string) {
    return adeTaskId(this.project, task);
  }

  async size(): Promise<number> {
    return this.connection.commands.zcard(this.keys.knownTasks());
  }

  /** Those of these ids that are tasks. */
  async known(ids: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (let at = 0; at < ids.length; at += BATCH) {
      const batch = ids.slice(at, at + BATCH);
      const numbers = await this.connection.commands.zmscore(this.keys.knownTasks(), ...batch);
      for (const [n, id] of batch.entries()) if (numbers[n] !== null) found.add(id);
    }
    return found;
  }

  /** All of them, in the order of their source. */
  async ids(): Promise<string[]> {
    return this.connection.commands.zrange(this.keys.knownTasks(), '0', '-1');
  }

  /** These tasks, or all, as their places among the others depend on them. */
  async graphTasks(wanted?: readonly string[]): Promise<KnownTask[]> {
    const ids = wanted ?? (await this.ids());
    const rows = await this.records(ids, GRAPH_FIELDS);
    return ids.map((id, at) => knownTask(id, rows[at]!)).filter((task) => task !== undefined);
  }

  /** These fields of many records, in batches that do not hold up others. */
  async records(ids: readonly string[], fields: readonly string[]): Promise<(string | null)[][]> {
    await this.current();
    const rows: (string | null)[][] = [];
    for (let at = 0; at < ids.length; at += BATCH) {
      const batch = ids.slice(at, at + BATCH);
      rows.push(
        ...(await Promise.all(batch.map((id) => this.connection.commands.hmget(this.keys.taskRecord(id), ...fields)))),
      );
    }
    return rows;
  }
}

const BATCH = 500;
