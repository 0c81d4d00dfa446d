import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../redis/connection.ts';

/** One Redis command with its arguments. */
export type Command = readonly [name: string, ...args: (string | Buffer)[]];

/** Few enough that neither the event loop nor Redis notices one chunk. */
const CHUNK = 250;

/** A command that failed inside EXEC, by its place. */
export interface Failure {
  readonly at: number;
  readonly error: Error;
}

/**
 * MULTI, all commands, EXEC on a client that nobody else uses, after whatever WATCH it has. Undefined: a watched key was
 * touched and nothing ran. Otherwise the commands that failed inside EXEC; the others ran all the same.
 */
export async function transact(client: Redis, commands: Iterable<Command>): Promise<readonly Failure[] | undefined> {
  await client.multi({ pipeline: false });
  await send(client, commands);
  const replies = (await client.exec()) as readonly unknown[] | null;
  if (replies === null) return undefined;
  return replies.flatMap((reply, at) => {
    const error: unknown = Array.isArray(reply) ? reply[0] : reply;
    return error instanceof Error ? [{ at, error }] : [];
  });
}

/** Sends commands in chunks and awaits each chunk, so that the event loop gets air. The answers in order. */
export async function send(client: RedisClient, commands: Iterable<Command>): Promise<unknown[]> {
  const answers: unknown[] = [];
  let chunk: Promise<unknown>[] = [];
  for (const [name, ...args] of commands) {
    chunk.push(client.call(name, ...args));
    if (chunk.length < CHUNK) continue;
    answers.push(...(await Promise.all(chunk)));
    chunk = [];
  }
  answers.push(...(await Promise.all(chunk)));
  return answers;
}

/** The server that has a key: WATCH, MULTI and EXEC must meet on one connection. */
export async function ownerOf(client: RedisClient, key: string): Promise<Redis> {
  if (!(client instanceof Cluster)) return client;
  const slot = await client.cluster('KEYSLOT', key);
  const [address] = client.slots[slot] ?? [];
  const owner = client.nodes('master').find(({ options }) => `${options.host}:${options.port}` === address);
  return owner ?? client.nodes('master')[0]!;
}

/** A command of many arguments as several of some: Redis runs each at one go. */
export function* spread(
  head: readonly [string, ...string[]],
  args: readonly (string | Buffer)[],
  most: number,
): Iterable<Command> {
  for (let at = 0; at < args.length; at += most) yield [...head, ...args.slice(at, at + most)] as Command;
}
