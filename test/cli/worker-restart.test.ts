import { expect, test } from 'vitest';
import { onlyObject, reeve } from '../support/cli.ts';
import { startDaemon } from '../support/daemon.ts';
import { testFolder } from '../support/folder.ts';
import { isRunning, until } from '../support/until.ts';

test('a command goes on while the daemon is started again, and its work counts', async () => {
  using folder = testFolder();
  const cli = (...args: string[]) => reeve(args, { cwd: folder.path });
  let daemon = await startDaemon({ cwd: folder.path });
  try {
    let pid = 0;
    const exec = 'echo pid=$$; until [ -e end ]; do sleep 0.05; done; echo "{\\"notes\\":\\"still here\\"}" >&3';
    const running = reeve(['worker', '--agent', 'ann', '--exec', exec, '--once'], {
      cwd: folder.path,
      started: (child) =>
        child.stdout?.on('data', (chunk) => {
          pid ||= Number(/pid=(\d+)/.exec(String(chunk))?.[1]);
        }),
    });
    await until('the command runs', () => pid > 0);
    await daemon.stop();
    expect(await isRunning(pid)).toBe(true);
    // It ends while nobody is there to hear of it.
    folder.write('end', '');
    await until('the command has ended', async () => !(await isRunning(pid)));
    daemon = await startDaemon({ cwd: folder.path });
    const { code, stdout, stderr } = await running;
    expect(code).toBe(0);
    expect(stdout).toContain('done=1');
    expect(stderr).toContain('Trying on.');
    const listed = onlyObject(await cli('task', 'show', 'TASK-001', '--json'));
    expect(listed).toMatchObject({ status: 'completed', result: { notes: 'still here' } });
  } finally {
    await daemon[Symbol.asyncDispose]();
  }
});
