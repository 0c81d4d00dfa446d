import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';

/** A wire between a client and Redis that breaks at an EXEC. */
export interface ExecCutter extends AsyncDisposable {
  /** For ioredis: the same Redis, by way of this wire. */
  readonly options: RedisOptions;
  /**
   * Breaks the connection at the nth EXEC from now on: before Redis gets it, or after Redis has run it and before its
   * reply gets back.
   */
  cutAt(nth: number, when: 'before' | 'after'): void;
  /** Breaks nothing more. Tells whether it had come to that. */
  mend(): boolean;
}

const EXEC = /\*1\r\n\$4\r\nexec\r\n/i;

export async function cutExecs(redis: { readonly options: RedisOptions }): Promise<ExecCutter> {
  const { path, port, host, ...login } = redis.options;
  const open = new Set<Socket>();
  let plan: { left: number; readonly when: 'before' | 'after'; isDone: boolean } | undefined;

  const server = createServer((near) => {
    const far = path ? connect(path) : connect(port!, host ?? '127.0.0.1');
    let isDoomed = false;
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', cut).on('close', () => {
        open.delete(socket);
        cut();
      });
    }
    near.on('data', (sent) => {
      if (plan && !plan.isDone && EXEC.test(sent.toString('latin1')) && --plan.left === 0) {
        plan.isDone = true;
        if (plan.when === 'before') return cut();
        isDoomed = true;
      }
      far.write(sent);
    });
    // Commands before EXEC were answered before it was sent, or came along with it: once Redis answers, it has run.
    far.on('data', (answer) => (isDoomed ? cut() : near.write(answer)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    options: { ...login, host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    cutAt: (nth, when) => {
      plan = { left: nth, when, isDone: false };
    },
    mend: () => {
      const wasCut = plan?.isDone ?? false;
      plan = undefined;
      return wasCut;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
