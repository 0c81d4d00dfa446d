import { spawn } from 'node:child_process';
import type { Clock } from './clock.ts';
import { reason } from './errors.ts';
import type { Logger } from './log.ts';
import { every, group, type Service, service } from './service.ts';

export interface SystemdOptions {
  /** NOTIFY_SOCKET, WATCHDOG_USEC and PATH of this process. Without a socket nobody listens and nothing is sent. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly status: () => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Tells systemd (Type=notify) when the daemon is ready, reloading and stopping, and pets its watchdog. Node has no
 * datagram sockets, hence the program systemd-notify; the unit needs NotifyAccess=all for it.
 */
export function systemd(options: SystemdOptions): Service & { reloading(): Promise<void> } {
  const { env, status, clock, log } = options;
  const isHeard = Boolean(env.NOTIFY_SOCKET);
  let isLeaving = false;
  const tell = (...words: string[]) => (isHeard && !isLeaving ? notify(words, env, log) : Promise.resolve());
  const ready = service('systemd', async () => {
    isLeaving = false;
    await tell('--ready', `--status=${status()}`);
    return () => {
      const farewell = tell('STOPPING=1', '--status=draining');
      // A reload that is still under way must not call the daemon ready again.
      isLeaving = true;
      return farewell;
    };
  });
  const watchdogUs = Number(env.WATCHDOG_USEC ?? 0);
  // The loop itself is the proof: a daemon whose event loop hangs does not get here.
  const watchdog = every('systemd watchdog', {
    clock,
    pauseMs: () => watchdogUs / 1000 / 3,
    isExact: true,
    tick: () => tell('WATCHDOG=1', `--status=${status()}`),
    onError: (error) => log.warn('systemd watchdog not told', { problem: reason(error) }),
  });
  const life = isHeard && watchdogUs > 0 ? group('systemd', [ready, watchdog]) : ready;
  return {
    ...life,
    reloading: async () => {
      await tell('--reloading');
      await tell('--ready');
    },
  };
}

function notify(words: readonly string[], env: SystemdOptions['env'], log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn('systemd-notify', [`--pid=${process.pid}`, ...words], { env: { ...env }, stdio: 'ignore' });
    child.once('error', (error) => {
      log.warn('systemd-notify does not run', { problem: error.message });
      resolve();
    });
    child.once('exit', () => resolve());
  });
}
