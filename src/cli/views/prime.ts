import type { Output } from '../output.ts';

interface Briefing {
  readonly you: string;
  readonly project: string;
  readonly state: string;
  readonly rules: readonly string[];
  readonly commands: readonly { readonly command: string; readonly does: string }[];
  readonly next: string;
}

/** One page, the same with and without a terminal: its reader is a model. */
export function show(output: Output, { you, project, state, rules, commands, next }: Briefing): void {
  output.print(`You are ${you} in the project ${project}. reeve is ${state}.`);
  output.print('');
  for (const rule of rules) output.print(`- ${rule}`);
  output.print('');
  const width = Math.max(...commands.map(({ command }) => command.length));
  for (const { command, does } of commands) output.print(`${command.padEnd(width)}  ${does}`);
  output.print('');
  output.print(`next  ${next}`);
}
