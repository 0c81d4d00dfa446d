import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import { systemClock as clock } from '../../clock.ts';
import { ReeveError } from '../../errors.ts';
import { daemonOf } from '../client.ts';
import type { CommandModule } from '../main.ts';
import { reportFailure } from '../output.ts';
import { attempt, leaseLost, type Manner } from '../worker/attempt.ts';
import { readRules } from '../worker/exit-rules.ts';
import { list, ms, readFlags, seconds } from '../worker/flags.ts';
import { keepTask } from '../worker/keep-task.ts';
import { interrupted } from '../worker/leash.ts';
import { createWorkClient } from '../worker/work-client.ts';

/** Runs a command under the lease of a task. Standard input and output are the command's own. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const { env, cwd, signal } = surroundings;
  const given = readFlags(typed, { input, words: 'run', env });
  const client = await daemonOf(flags, surroundings);
  const work = createWorkClient(() => daemonOf(flags, surroundings));
  const say = (task: string, text: string) => output.hint(`${task}: ${text}`);
  const wish = { lockId: randomUUID(), leaseClass: 'process', waitSeconds: 0, task: given.task } as const;
  const held = await work.claim({ ...given, concurrency: 1 }, wish, signal);
  // With its hands full an agent is told what it has; if that is this very task, it goes on with it.
  if (held?.task.task_id !== given.task) {
    const why = `${given.agent} has its hands full${held ? ` with ${held.task.task_id}` : ''}`;
    throw new ReeveError('TASK_BUSY', { task: given.task, agent: given.agent, why });
  }
  const isInForeground = process.stdin.isTTY === true;
  const manner: Manner = {
    work,
    clock,
    env,
    cwd,
    url: client.url,
    token: typeof flags.token === 'string' ? flags.token : undefined,
    argv: given.command,
    stash: given.stash,
    rollback: given.rollback,
    resultFile: given.result,
    rules: readRules({ exitCodes: given.exit_codes }),
    timeoutMs: ms(given.timeout),
    keep: (claimed) => keepTask(claimed, { work, clock, say }),
    isInForeground,
    told: signal,
    forced: surroundings.insisted(),
    say,
  };
  const { outcome, exitCode } = await attempt(held, manner);
  if (outcome === 'lost') return reportFailure(output, leaseLost(held));
  return outcome === 'dropped' ? interrupted(signal) : exitCode;
};

const typed = z.object({
  task: z.string(),
  command: z.tuple([z.string()], z.string()),
  agent: z.string().default(() => ownName()),
  type: z.string().optional(),
  capabilities: list,
  result: z.string().optional(),
  stash: z.string().min(1).optional(),
  rollback: z.string().optional(),
  timeout: seconds.optional(),
  exit_codes: z.string().optional(),
});

/** Each process is somebody of its own, so that a place that another one holds is not taken for ours. */
const ownName = () =>
  `run-${hostname()
    .replace(/[^A-Za-z0-9._-]/g, '-')
    .slice(0, 64)}-${process.pid}`;
