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
  /** Speaks to a daemon: takes --url and --token. */
  readonly asks?: boolean;
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
    examples: ['claude mcp add reeve -- reeve mcp', 'reeve mcp --url http://127.0.0.1:7420'],
    exits: [0, 2, 8],
    asks: true,
    module: 'mcp',
  },
  {
    words: 'hold',
    summary: 'Run a command while holding a lock',
    description:
      'Beats while the command runs, gives the lock back when it ends, and passes on its exit code. The command finds REEVE_LOCK_ID and REEVE_FENCING_TOKEN in its environment. When the lock is lost it is stopped: SIGTERM, and SIGKILL ten seconds later.',
    args: [
      { name: 'lock', description: 'task:ID or resource:TYPE:ID', required: true },
      { name: 'command', description: 'The command and its arguments, after --', required: true, variadic: true },
    ],
    options: [
      text('--agent', 'agent', 'who holds it (REEVE_AGENT). Default: a name for this process'),
      text('--wait', 'wait', 'seconds to stay in line; without it a lock that is taken ends this with exit code 6'),
      text('--mode', 'mode', 'shared lets others share it, too', 'exclusive|shared'),
      text('--purpose', 'purpose', 'what for, in words. Default: the command'),
      text('--ttl', 'ttl', 'seconds that it lives without a heartbeat'),
      text('--also', 'also', 'further locks, separated by commas: all or nothing'),
    ],
    examples: [
      'reeve hold resource:database:prod -- npm run migrate',
      'reeve hold resource:file:CHANGELOG.md --wait 60 -- ./release.sh',
    ],
    exits: [0, 2, 5, 6, 8, 9],
    asks: true,
    module: 'hold',
  },
];

function text(flag: string, property: string, description: string, placeholder = property): Option {
  return { flag, property, type: 'text', placeholder, description };
}
