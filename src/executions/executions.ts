import { createHash } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { type LeaseRef, late, UNKNOWN } from '../coordinator/tasks/lease.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { ReeveError } from '../errors.ts';
import type { FilePart, FileStore } from '../files/file-store.ts';
import { cut, encodingOf } from './cut.ts';
import { type Execution, type Rollback, readExecution } from './execution.ts';
import { output, rolledBack, stash } from './scripts.ts';

export interface ExecutionLimits {
  /** What is longer goes to a file. */
  readonly inlineBytes: number;
  /** What is longer is refused. */
  readonly maxBytes: number;
  readonly keepMs: number;
}

export interface ExecutionsOptions {
  readonly store: TaskStore;
  readonly files: FileStore;
  readonly limits: () => ExecutionLimits;
  readonly clock: Clock;
}

export interface Range {
  readonly offset: number;
  readonly length: number;
}

type NotYours = ReturnType<typeof late> | typeof UNKNOWN;
export type StashOutcome =
  | { readonly outcome: 'kept' | 'same'; readonly at: string }
  /** An earlier one has not been undone. */
  | { readonly outcome: 'stands'; readonly at: string; readonly by: string }
  | NotYours;
export type OutputOutcome =
  | { readonly outcome: 'kept'; readonly bytes: number; readonly key?: string | undefined }
  | { readonly outcome: 'has' }
  | NotYours;
export type RollbackOutcome =
  | { readonly outcome: 'noted'; readonly at: string; readonly status: string }
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'running'; readonly agent: string }
  | NotYours;

const SWEPT_AT_ONCE = 100;

/** What attempts leave: what they wrote, and what undoes them. Short things in Redis, long ones in files beside it. */
export class Executions {
  readonly #options: ExecutionsOptions;

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  async show(task: string): Promise<Execution> {
    const { connection, keys } = this.#options.store;
    const ade = this.#options.store.adeId(task);
    if (!(await connection.commands.exists(keys.taskState(ade)))) throw new ReeveError('TASK_UNKNOWN', { task });
    return readExecution(await connection.commands.hgetall(keys.taskExecution(ade)));
  }

  /** Saves what undoes an attempt, before it changes anything. */
  async stash(lease: LeaseRef, bytes: Buffer, command = ''): Promise<StashOutcome> {
    const { store, files, limits } = this.#options;
    this.#refuseTooLong('stash', bytes);
    const isShort = bytes.length <= limits().inlineBytes;
    const encoding = encodingOf(bytes);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const key = isShort ? '' : await this.#keep('stashes', lease, bytes);
    const reply = await store.scripts.run(
      stash,
      {},
      {
        ...this.#named(lease),
        stash: isShort ? bytes.toString(encoding) : '',
        stash_key: key,
        stash_store: key && files.place,
        encoding,
        bytes: String(bytes.length),
        sha256,
        command: command.slice(0, 4_096),
      },
    );
    if (reply[0] === 'KEPT') return { outcome: 'kept', at: reply[1] as string };
    await this.#discard(key);
    if (reply[0] === 'SAME') return { outcome: 'same', at: reply[1] as string };
    if (reply[0] === 'STANDS') return { outcome: 'stands', at: reply[1] as string, by: reply[2] as string };
    return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
  }

  /** Keeps what an attempt wrote. Weak: unless it has left something already. */
  async output(lease: LeaseRef, bytes: Buffer, { isWeak = false } = {}): Promise<OutputOutcome> {
    const { store, files, limits } = this.#options;
    this.#refuseTooLong('output', bytes);
    const { inlineBytes } = limits();
    const isShort = bytes.length <= inlineBytes && encodingOf(bytes) === 'utf8';
    const key = isShort ? '' : await this.#keep('outputs', lease, bytes);
    const args = {
      ...this.#named(lease),
      output: cut(bytes, inlineBytes, `reeve task output ${lease.task}`),
      output_key: key,
      output_store: key && files.place,
      bytes: String(bytes.length),
      weak: Number(isWeak),
    };
    const reply = await store.scripts.run(output, {}, args);
    if (reply[0] === 'KEPT') return { outcome: 'kept', bytes: bytes.length, ...(key && { key }) };
    await this.#discard(key);
    if (reply[0] === 'HAS') return { outcome: 'has' };
    return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
  }

  /** How the undoing went: said by the holder of the task or, when nobody has it, by a person. */
  async rolledBack(
    lease: LeaseRef,
    { outcome, reason, isPerson }: { outcome: Exclude<Rollback, 'owed'>; reason: string; isPerson: boolean },
  ): Promise<RollbackOutcome> {
    const args = { ...this.#named(lease), person: Number(isPerson), outcome, reason: reason.slice(0, 2_000) };
    const reply = await this.#options.store.scripts.run(rolledBack, {}, args);
    switch (reply[0]) {
      case 'NOTED':
        return { outcome: 'noted', at: reply[1] as string, status: reply[2] as string };
      case 'NOTHING':
        return { outcome: 'nothing' };
      case 'RUNNING':
        return { outcome: 'running', agent: reply[1] as string };
      default:
        return reply[0] === 'LATE' ? late(reply) : UNKNOWN;
    }
  }

  async readStash(task: string, range: Range): Promise<FilePart | undefined> {
    const { stash: text, stash_key, stash_store, stash_encoding, stash_at } = await this.show(task);
    if (stash_at === undefined) return undefined;
    if (stash_key === undefined) return partOf(Buffer.from(text ?? '', stash_encoding), range);
    return this.#read(task, { key: stash_key, store: stash_store }, range);
  }

  async readOutput(task: string, range: Range): Promise<FilePart | undefined> {
    const { output: text, output_key, output_store } = await this.show(task);
    if (output_key !== undefined) return this.#read(task, { key: output_key, store: output_store }, range);
    return text === undefined ? undefined : partOf(Buffer.from(text), range);
  }

  /** Throws away what has been kept for long enough; answers with how many files that were. */
  async sweepOnce(): Promise<number> {
    const { store, files, clock } = this.#options;
    const { connection, keys } = store;
    const now = Math.floor(clock.now() / 1000);
    let swept = 0;
    for (let from = 0; ; ) {
      const due = await connection.commands.zrangebyscore(keys.fileExpiry(), '-inf', now, 'LIMIT', from, SWEPT_AT_ONCE);
      const own = due.filter((member) => member.startsWith(`${files.place} `));
      for (const member of own) {
        await files.remove(member.slice(files.place.length + 1));
        swept += await connection.commands.zrem(keys.fileExpiry(), member);
      }
      if (due.length < SWEPT_AT_ONCE) return swept;
      // Those of other places are for the daemons there.
      from += due.length - own.length;
    }
  }

  #named({ task, agent, lockId = '', token = '' }: LeaseRef) {
    return { ...this.#options.store.common(agent, lockId), task, token };
  }

  #refuseTooLong(what: string, { length }: Buffer): void {
    const { maxBytes } = this.#options.limits();
    if (length > maxBytes) throw new ReeveError('FILE_TOO_LARGE', { what, bytes: length, most: maxBytes });
  }

  /** When it is to be thrown away is written down first: a daemon that dies here leaves nothing for ever. */
  async #keep(kind: 'outputs' | 'stashes', { task, lockId, token }: LeaseRef, bytes: Buffer): Promise<string> {
    const { store, files, limits, clock } = this.#options;
    const { connection, keys } = store;
    const moment = new Date(clock.now()).toISOString().replace(/[-:.]/g, '');
    const key = `${kind}/${store.adeId(task)}/${moment}-${(token ?? lockId ?? 'unfenced').slice(0, 64)}`;
    const ends = Math.ceil((clock.now() + limits().keepMs) / 1000);
    await connection.commands.zadd(keys.fileExpiry(), ends, `${files.place} ${key}`);
    await files.put(key, bytes);
    return key;
  }

  async #discard(key: string): Promise<void> {
    if (!key) return;
    const { store, files } = this.#options;
    await files.remove(key);
    await store.connection.commands.zrem(store.keys.fileExpiry(), `${files.place} ${key}`);
  }

  async #read(task: string, { key, store }: { key: string; store: string | undefined }, range: Range) {
    const { files } = this.#options;
    if (store !== files.place) throw new ReeveError('FILE_ELSEWHERE', { task, key, store: store ?? 'unknown' });
    const part = await files.read(key, range);
    if (!part) throw new ReeveError('FILE_GONE', { task, key });
    return part;
  }
}

const partOf = (bytes: Buffer, { offset, length }: Range): FilePart => ({
  bytes: bytes.subarray(offset, offset + length),
  size: bytes.length,
});
