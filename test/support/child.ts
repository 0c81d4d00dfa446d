import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

export interface TestChild extends AsyncDisposable {
  readonly pid: number;
  /** The next line it prints, read as JSON. */
  next(): Promise<unknown>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Runs a piece of module code in a process of its own, for what only the death of a process can show. */
export function runChild(code: string, { as = [] }: { as?: readonly string[] } = {}): TestChild {
  const command = [...as, process.execPath, '--input-type=module', '-e', code];
  const child: ChildProcessWithoutNullStreams = spawn(command[0]!, command.slice(1));
  let complaints = '';
  child.stderr.on('data', (chunk) => {
    complaints += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await exited;
  };
  return {
    pid: child.pid!,
    next: async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the child ended without a word: ${complaints}`);
      return JSON.parse(value);
    },
    kill,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL');
    },
  };
}

/** The URL by which such code imports a source file. */
export const sourceUrl = (file: string): string =>
  pathToFileURL(new URL(`../../src/${file}`, import.meta.url).pathname).href;
