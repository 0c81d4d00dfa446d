import type { Output } from '../output.ts';

interface Briefing {
  readonly you: string;
  readonly project: string;
  readonly state: string;
  readonly work: Readonly<Record<string, number>>;
  readonly yours: readonly { readonly task_id: string; readonly title: string; readonly expires_at: string }[];
  readonly rules: readonly string[];
  readonly commands: readonly { readonly command: string; readonly does: string }[];
  readonly next: string;
}

/** One page, the same with and without a terminal: its reader is a model. */
export function show(output: Output, { you, project, state, work, yours, rules, commands, next }: Briefing): void {
  output.print(`You are ${you} in the project ${project}. reeve is ${state}.`);
  output.print(
    `tasks  ${Object.entries(work)
      .map(([name, count]) => `${name}=${count}`)
      .join(' ')}`,
  );
  for (const { task_id, title, expires_at } of yours)
    output.print(`yours  ${task_id} until=${expires_at} title=${JSON.stringify(title)}`);
  output.print('');
  for (const rule of rules) output.print(`- ${rule}`);
  output.print('');
  const width = Math.max(...commands.map(({ command }) => command.length));
  for (const { command, does } of commands) output.print(`${command.padEnd(width)}  ${does}`);
  output.print('');
  output.print(`next  ${next}`);
}
