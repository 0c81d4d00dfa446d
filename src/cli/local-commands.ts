import type { Argument, Option } from './manifest.ts';

/** A command that is no operation: it runs here, not in the daemon. */
export interface LocalCommand {
  readonly words: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly args?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Takes every setting as a flag. */
  readonly takesSettings?: boolean;
  readonly examples: readonly string[];
  readonly exits?: readonly number[];
  /** The file in cli/commands that runs it. */
  readonly module: string;
}

export const LOCAL_COMMANDS: readonly LocalCommand[] = [
  {
    words: 'daemon',
    aliases: ['serve'],
    summary: 'Run the service in the foreground',
    description: 'SIGTERM and Ctrl-C drain and stop; a second one forces. SIGHUP reads the configuration again.',
    takesSettings: true,
    examples: ['reeve daemon', 'reeve daemon --http-port 0 --data-dir /var/lib/reeve'],
    exits: [0, 1, 2, 5, 8],
    module: 'daemon',
  },
  {
    words: 'config schema',
    summary: 'Print the JSON Schema of reeve.yaml, for editors',
    examples: ['reeve config schema > reeve.schema.json'],
    module: 'config-schema',
  },
  {
    words: 'schema',
    summary: 'Print the JSON Schema of what a command takes and answers',
    args: [{ name: 'command', description: 'The words of the command', required: true, variadic: true }],
    examples: ['reeve schema status', 'reeve schema config show'],
    module: 'schema',
  },
  {
    words: 'mcp',
    summary: 'Serve the tools of a running daemon over MCP on standard input and output',
    options: [
      {
        flag: '--url',
        property: 'url',
        type: 'text',
        placeholder: 'url',
        description: 'the daemon to ask (REEVE_URL)',
      },
      {
        flag: '--token',
        property: 'token',
        type: 'text',
        placeholder: 'token',
        description: 'who is asking (REEVE_TOKEN)',
      },
    ],
    examples: ['claude mcp add reeve -- reeve mcp', 'reeve mcp --url http://127.0.0.1:7420'],
    exits: [0, 2, 8],
    module: 'mcp',
  },
];
