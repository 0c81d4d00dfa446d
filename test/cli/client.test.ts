import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Client } from '../../src/cli/client.ts';

test('a daemon that goes away while it is listened to is said to be gone, not unforeseen', async () => {
  let streaming: ServerResponse | undefined;
  const daemon = createServer((_request, response) => {
    streaming = response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('id: 1\ndata: {"kind":"listening"}\n\n');
  }).listen(0, '127.0.0.1');
  await once(daemon, 'listening');
  try {
    const client = new Client(`http://127.0.0.1:${(daemon.address() as AddressInfo).port}`);
    const { signal } = new AbortController();
    const heard: unknown[] = [];
    const listening = (async () => {
      for await (const { item } of client.follow({ method: 'GET', path: '/sync', input: {}, signal })) {
        heard.push(item);
        streaming?.destroy();
      }
    })();
    await expect(listening).rejects.toMatchObject({ code: 'DAEMON_UNREACHABLE' });
    expect(heard).toEqual([{ kind: 'listening' }]);
  } finally {
    daemon.closeAllConnections();
    daemon.close();
  }
});
