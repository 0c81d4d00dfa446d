import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { plainEnv, REEVE } from '../cli.ts';
import type { FoundProgram } from '../redis-cli.ts';

export interface ProcessAgentOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** An agent that is a process of its own, and is killed as one, with all that it started. */
export class ProcessAgent {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  constructor({ name, command: [program, ...args], cwd, env = {} }: ProcessAgentOptions) {
    this.name = name;
    this.#child = spawn(program, args, { cwd, env: plainEnv(env), stdio: 'ignore', detached: true });
    this.#exited = once(this.#child, 'exit');
  }

  async run(): Promise<void> {
    await this.#exited;
  }

  stop(): void {
    this.#signal('SIGTERM');
  }

  kill(): undefined {
    this.#signal('SIGKILL');
    return undefined;
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) process.kill(-this.#child.pid!, signal);
  }
}

export const workerCommand = (name: string): [string, ...string[]] => [
  REEVE,
  'worker',
  '--agent',
  name,
  '--exec',
  'sleep 0.05',
  '--quiet',
];

/** Pattern 1 of the contract, in the shell it was written for, over and over. */
export const shellCommand = (name: string, cli: FoundProgram, port: number): [string, ...string[]] => [
  'bash',
  '-c',
  `redis-cli() { '${cli.program}' -p ${port} "$@" 2>/dev/null; }
agent_id=${name}
while true; do
  task_id=$(redis-cli RPOP odyssey:task:queue)
  if [ -z "$task_id" ]; then sleep 0.2; continue; fi
  redis-cli SET odyssey:task:$task_id:status "assigned"
  redis-cli HSET odyssey:agent:$agent_id current_task "$task_id"
  redis-cli SET odyssey:task:$task_id:status "in_progress"
  redis-cli HINCRBY odyssey:progress pending -1
  redis-cli HINCRBY odyssey:progress in_progress 1
  sleep 0.05
  redis-cli SET odyssey:task:$task_id:status "completed"
  redis-cli SET odyssey:task:$task_id:result '{"task_id":"'$task_id'","notes":"done by '$agent_id'"}'
  redis-cli HINCRBY odyssey:progress in_progress -1
  redis-cli HINCRBY odyssey:progress completed 1
done`,
];
