import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ReeveEvent } from '../events/catalogue.ts';
import type { Caller } from '../operations/operation.ts';
import type { McpDoorOptions } from './server.ts';

/** The MCP door, which is made when first somebody knocks: the protocol's library takes a sixth of an idle daemon's memory. */
export function mcpDoor(options: McpDoorOptions) {
  let opened: ReturnType<typeof open> | undefined;
  return {
    mount: async (request: IncomingMessage, response: ServerResponse, body: unknown, caller: Caller): Promise<void> => {
      opened ??= open(options);
      await (await opened).mount(request, response, body, caller);
    },
    /** Nobody listens before the first has knocked. */
    told: (event: ReeveEvent): void => {
      opened?.then(
        (door) => door.told(event),
        () => {},
      );
    },
    close: async (): Promise<void> => {
      await (await opened)?.close();
    },
  };
}

async function open(options: McpDoorOptions) {
  const { openMcpDoor } = await import('./server.ts');
  return openMcpDoor(options);
}
