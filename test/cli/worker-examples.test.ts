import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { onlyObject, ROOT, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { type TestFolder, testFolder } from '../support/folder.ts';

let folder: TestFolder;
let daemon: TestDaemon;
beforeAll(async () => {
  folder = testFolder();
  mkdirSync(join(folder.path, 'bin'));
  daemon = await startDaemon({ cwd: folder.path });
  await reeve(['policy', 'set', 'all', '--auto-approve-if', '{"risk_below":100}'], { cwd: folder.path });
  for (const at of [1, 2, 3, 4]) {
    const args = ['task', 'add', `TASK-10${at}`, '--title', `Example ${at}`, '--agent-type', 'example', '--submit'];
    await reeve(args, { cwd: folder.path });
  }
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Takes the place of an agent's program: writes down how it was called, then does as the real one would. */
function fake(name: string, then: string): void {
  const notes = `printf '%s\\0' "$@" > ${name}.argv; env > ${name}.env; cat > ${name}.stdin`;
  chmodSync(folder.write(`bin/${name}`, `#!/bin/sh\n${notes}\n${then}\n`), 0o755);
}
const noted = (name: string, what: string) => readFileSync(join(folder.path, `${name}.${what}`), 'utf8');
const argvOf = (name: string) => noted(name, 'argv').split('\0').slice(0, -1);

async function work(example: string, env: Readonly<Record<string, string>> = {}) {
  const path = `${join(folder.path, 'bin')}:${process.env.PATH}`;
  const exec = join(ROOT, 'examples', example);
  const ran = await reeve(['worker', '--agent', 'ann', '--type', 'example', '--exec', exec, '--once'], {
    cwd: folder.path,
    env: { PATH: path, ...env },
  });
  return { ...ran, task: /TASK-\d+/.exec(ran.stderr)?.[0] ?? '' };
}
const show = async (task: string) => onlyObject(await reeve(['task', 'show', task, '--json'], { cwd: folder.path }));

const ANSWER = { type: 'result', result: 'Set it up.', session_id: 's-1', total_cost_usd: 0.25, num_turns: 7 };

test('Claude Code is given the prompt as an argument and the task on standard input; its answer is the result', async () => {
  fake('claude', `echo '${JSON.stringify({ ...ANSWER, is_error: false })}'`);
  const { code, task } = await work('worker-claude-code.sh', { CLAUDE_ARGS: '--max-turns 80' });
  expect(code).toBe(0);
  const [print, prompt, ...rest] = argvOf('claude');
  expect(print).toBe('-p');
  expect(prompt).toContain(`reeve note ${task} 'what you did' --agent ann`);
  const tools = 'Bash,Read,Edit,Write,Glob,Grep';
  expect(rest).toEqual([
    ...['--output-format', 'json', '--permission-mode', 'acceptEdits', '--allowedTools', tools],
    ...['--max-turns', '80'],
  ]);
  expect(JSON.parse(noted('claude', 'stdin'))).toMatchObject({ task: { task_id: task }, lease: { agent_id: 'ann' } });
  expect(noted('claude', 'env')).toContain(`REEVE_TASK_ID=${task}\n`);
  expect(noted('claude', 'env')).toContain(`REEVE_URL=${daemon.url}\n`);
  expect(await show(task)).toMatchObject({
    status: 'completed',
    result: { notes: 'Set it up.', session_id: 's-1', total_cost_usd: 0.25, num_turns: 7 },
  });
});

test('an error that Claude Code reports with exit code 0 is a failure', async () => {
  fake('claude', `echo '${JSON.stringify({ ...ANSWER, is_error: true, result: 'It cannot be done.' })}'`);
  const { code, stderr } = await work('worker-claude-code.sh');
  expect(code).toBe(1);
  expect(stderr).toContain('failed (task)');
});

test('Codex is given prompt and task on standard input; its last message is the result', async () => {
  const last = 'while [ $# -gt 0 ]; do [ "$1" = --output-last-message ] && printf "Did it." > "$2"; shift; done';
  fake('codex', last);
  const { code, task } = await work('worker-codex.sh', { CODEX_ARGS: '--model some-model' });
  expect(code).toBe(0);
  expect(argvOf('codex')).toEqual([
    ...['exec', '--sandbox', 'workspace-write', '--skip-git-repo-check', '--output-last-message'],
    ...[expect.any(String), '--model', 'some-model', '-'],
  ]);
  const [prompt, json] = noted('codex', 'stdin').split('\n\n');
  expect(prompt).toContain('You are the agent ann.');
  expect(JSON.parse(json!)).toMatchObject({ task: { task_id: task }, lease: { agent_id: 'ann' } });
  expect(noted('codex', 'env')).toContain(`REEVE_TASK_ID=${task}\n`);
  expect(await show(task)).toMatchObject({ status: 'completed', result: { notes: 'Did it.' } });
});

test('a limit that Codex runs into costs the task no attempt', async () => {
  fake('codex', 'echo "ERROR: insufficient_quota" >&2; exit 1');
  const { code, stderr } = await work('worker-codex.sh');
  expect(code).toBe(1);
  expect(stderr).toContain('failed (quota)');
});
