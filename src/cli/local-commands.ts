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
    words: 'asset validate',
    summary: 'Check manifests here, without a daemon',
    description: 'Prints file:line:column for whatever is wrong, and exits with 10 if something is.',
    args: [{ name: 'path', description: 'Files or folders', required: true, variadic: true }],
    examples: ['reeve asset validate assets', 'reeve asset validate tools/ping/manifest.yaml --json'],
    exits: [0, 2, 10],
    module: 'asset-validate',
  },
  {
    words: 'asset schema',
    summary: 'Print the JSON Schema of a manifest, for editors',
    examples: ['reeve asset schema > manifest.schema.json'],
    module: 'asset-schema',
  },
  {
    words: 'mcp',
    summary: 'Serve the tools of a running daemon over MCP on standard input and output',
    options: [
      text('--agent', 'agent', 'who works (REEVE_AGENT). Default: whom the token names, else a name for this process'),
    ],
    examples: ['claude mcp add reeve -- reeve mcp', 'reeve mcp --url http://127.0.0.1:7420'],
    exits: [0, 2, 8],
    asks: true,
    module: 'mcp',
  },
  {
    words: 'task import',
    summary: 'Take in the tasks of a JSON file',
    args: [{ name: 'file', description: 'A list of tasks, or an object with `tasks`', required: true }],
    examples: ['reeve task import tasks.json'],
    exits: [0, 2, 8],
    asks: true,
    module: 'task-import',
  },
  {
    words: 'audit export',
    summary: 'Print the audit log, one JSON object a row, in the order of its chain',
    options: [text('--after', 'after', 'only rows after this number', 'seq')],
    examples: ['reeve audit export > audit.jsonl', 'reeve audit export --after 4200 >> audit.jsonl'],
    exits: [0, 2, 4, 8],
    asks: true,
    module: 'audit-export',
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
  {
    words: 'worker',
    summary: 'Host an agent: claim tasks and run a command for each',
    description:
      'The command is run by /bin/sh. It finds its task as JSON on standard input and in REEVE_TASK_FILE, its id in REEVE_TASK_ID, and leaves its result as JSON in REEVE_RESULT_FILE or on descriptor 3. Exit code 0 completes the task; 75 and a few others say that the task is not to blame. The first SIGTERM or Ctrl-C stops claiming and waits for what runs; a second one kills it and gives the tasks back. The guide: docs/guides/agents.md',
    options: [
      text('--agent', 'agent', 'who works (REEVE_AGENT; required)'),
      text('--exec', 'exec', 'the command, for the shell (required)', 'command'),
      text('--concurrency', 'concurrency', 'how many tasks at a time (default 1)', 'n'),
      text('--type', 'type', 'what kind of agent it is'),
      text('--capabilities', 'capabilities', 'what it can do, separated by commas', 'a,b'),
      text('--result', 'result', 'where the command leaves its result; {task} stands for the id', 'file'),
      text(
        '--stash',
        'stash',
        'run before the command, unless the task says rollback_strategy: none; what it prints is saved and undoes the change',
        'command',
      ),
      text(
        '--rollback',
        'rollback',
        'run when an attempt failed whose task says rollback_strategy: automatic',
        'command',
      ),
      text('--timeout', 'timeout', 'longest run of a command; a shorter limit of the task counts', 'seconds'),
      text('--no-progress', 'no_progress', 'alarm after so long without output: a note on the task', 'seconds'),
      bool('--kill-silent', 'kill_silent', 'end the command then, too'),
      text(
        '--grace',
        'grace',
        'how long running commands may go on after the first signal (default: to their end)',
        'seconds',
      ),
      bool('--once', 'once', 'take one task, then end; exit code 1 if it failed'),
      text('--drain-after', 'drain_after', 'take so many tasks, then end', 'n'),
      text(
        '--lease-class',
        'lease_class',
        'agent survives a daemon that is away for long (default process)',
        'process|agent',
      ),
      text('--exit-codes', 'exit_codes', 'what further exit codes mean, as in 80=quota,81=auth', 'code=class'),
      text('--quota-pattern', 'quota_pattern', 'what the end of the output says when a limit is reached', 'regex'),
      text('--auth-pattern', 'auth_pattern', 'what it says when the agent is not logged in', 'regex'),
      bool('--quiet', 'quiet', 'do not pass on the output of commands'),
    ],
    examples: [
      'reeve worker --agent ann --exec ./solve.sh',
      'reeve worker --agent ann --exec \'make "$REEVE_TASK_ID"\' --concurrency 4 --timeout 1800 --no-progress 300',
    ],
    exits: [0, 1, 2, 4, 8],
    asks: true,
    module: 'worker',
  },
  {
    words: 'run',
    summary: 'Run a command under the lease of a task',
    description:
      'Claims the task, beats while the command runs, and completes or fails the task by its exit code, which is passed on. The command finds its task in REEVE_TASK_FILE, the rest as under reeve worker; standard input is its own. When the lease is lost it is stopped. Told to end, it ends the command and gives the task back.',
    args: [
      { name: 'task', description: 'Which task', required: true },
      { name: 'command', description: 'The command and its arguments, after --', required: true, variadic: true },
    ],
    options: [
      text('--agent', 'agent', 'who works (REEVE_AGENT). Default: a name for this process'),
      text('--type', 'type', 'what kind of agent it is'),
      text('--capabilities', 'capabilities', 'what it can do, separated by commas', 'a,b'),
      text('--result', 'result', 'where the command leaves its result', 'file'),
      text('--stash', 'stash', 'run before it; what it prints is saved and undoes the change', 'command'),
      text('--rollback', 'rollback', 'run when it failed and the task says rollback_strategy: automatic', 'command'),
      text('--timeout', 'timeout', 'longest run of the command; a shorter limit of the task counts', 'seconds'),
      text('--exit-codes', 'exit_codes', 'what further exit codes mean, as in 80=quota,81=auth', 'code=class'),
    ],
    examples: ['reeve run TASK-042 -- ./agent.sh', 'reeve run TASK-042 --agent ann --timeout 600 -- npm test'],
    exits: [0, 2, 3, 5, 6, 8],
    asks: true,
    module: 'run',
  },
];

function text(flag: string, property: string, description: string, placeholder = property): Option {
  return { flag, property, type: 'text', placeholder, description };
}

function bool(flag: string, property: string, description: string): Option {
  return { flag, property, type: 'boolean', placeholder: property, description };
}
