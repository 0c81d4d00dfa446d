import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { EXIT } from '../../error-catalogue.ts';
import { mcpServer } from '../../mcp/server.ts';
import { operations } from '../../operations/index.ts';
import { findDaemon } from '../client.ts';
import type { CommandModule } from '../main.ts';

/** Each call goes to the daemon over HTTP; standard output belongs to the protocol. It ends when the client hangs up. */
export const run: CommandModule['run'] = async ({ flags }, _output, { manifest, env, cwd, signal }) => {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  const find = () =>
    findDaemon({ url: text('url'), token: text('token'), config: text('config'), dataDir: text('data-dir'), env, cwd });
  await (await find()).ask({ method: 'GET', path: '//healthz', input: {}, signal });
  const served = serveStdio(() =>
    mcpServer({ operations, version: manifest.version }, async ({ http: { method, path } }, input, callSignal) => {
      // Found anew for each call: the daemon may have been restarted at another address.
      const client = await find();
      const { answer } = await client.ask({
        method,
        path,
        input: input as Record<string, unknown>,
        signal: callSignal,
      });
      return answer;
    }),
  );
  await new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await served.close();
  // After Ctrl-C the client's end is still open, and would keep this process waiting for it.
  process.stdin.destroy();
  return signal.aborted ? EXIT.interrupted : EXIT.ok;
};
