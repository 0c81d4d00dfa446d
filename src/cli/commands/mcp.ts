import { hostname } from 'node:os';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { systemClock, withDeadline } from '../../clock.ts';
import { EXIT } from '../../error-catalogue.ts';
import { LOCAL_USER } from '../../identity/caller.ts';
import { mcpServer } from '../../mcp/server.ts';
import { operations } from '../../operations/index.ts';
import { type Client, daemonOf } from '../client.ts';
import { LeaseKeeper } from '../lease-keeper.ts';
import type { CommandModule } from '../main.ts';

/**
 * Each call goes to the daemon over HTTP; standard output belongs to the protocol. Until the client hangs up, whatever it was given is
 * kept alive, and then given back.
 */
export const run: CommandModule['run'] = async ({ flags, input }, _output, { manifest, env, cwd, signal }) => {
  const find = () => daemonOf(flags, { env, cwd });
  await (await find()).ask({ method: 'GET', path: '//healthz', input: {}, signal });
  const who = given(input.agent) ?? env.REEVE_AGENT ?? (await ownName(await find()));
  const keeper = new LeaseKeeper(operations, async ({ http: { method, path } }, asked, callSignal) => {
    // Found anew for each call: the daemon may have been restarted at another address.
    const client = await find();
    const { answer } = await client.ask({ method, path, input: asked as Record<string, unknown>, signal: callSignal });
    return answer;
  });
  const beating = keeper.beating(systemClock);
  await beating.start();
  const served = serveStdio(() => mcpServer({ operations, version: manifest.version, who }, keeper.ask));
  await new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await served.close();
  await beating.stop();
  await giveBackInTime(keeper);
  // After Ctrl-C the client's end is still open, and would keep this process waiting for it.
  process.stdin.destroy();
  return signal.aborted ? EXIT.interrupted : EXIT.ok;
};

/** Whoever hangs up does not wait for long; what is not given back by then ends by itself. */
async function giveBackInTime(keeper: LeaseKeeper): Promise<void> {
  const late = new AbortController();
  const given = keeper.giveBack(late.signal);
  await withDeadline(systemClock, GIVE_BACK_MS, given, () => new Error('too late')).catch(() => late.abort());
}
const GIVE_BACK_MS = 5_000;

const given = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Whoever the token says; where nobody needs one, each client is somebody of its own. */
async function ownName(client: Client): Promise<string> {
  const { answer } = await client.ask({ method: 'GET', path: '/sessions/current', input: {} });
  const { user } = answer as { user: string };
  if (user !== LOCAL_USER) return user;
  const host = hostname().replace(/[^A-Za-z0-9._-]/g, '-');
  return `mcp-${host.slice(0, 64)}-${process.pid}`;
}
