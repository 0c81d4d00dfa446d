import type { RedisOptions } from 'ioredis';

/** Where the embedded Redis listens. A socket is preferred: file permissions guard it, and no port is taken. */
export type RedisAddress =
  | { readonly kind: 'socket'; readonly path: string; readonly password: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly password: string };

/** For people: it never holds the password. */
export const addressText = (address: RedisAddress): string =>
  address.kind === 'socket' ? `unix:${address.path}` : `${address.host}:${address.port}`;

export const connectionOptions = (address: RedisAddress): RedisOptions =>
  address.kind === 'socket'
    ? { path: address.path, password: address.password }
    : { host: address.host, port: address.port, password: address.password };
