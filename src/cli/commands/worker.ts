import { once } from 'node:events';
import { z } from 'zod';
import { systemClock as clock } from '../../clock.ts';
import { EXIT } from '../../error-catalogue.ts';
import { daemonOf } from '../client.ts';
import type { CommandModule } from '../main.ts';
import type { Output } from '../output.ts';
import { hostAgent, type Tally } from '../worker/agent-host.ts';
import { attempt, type Manner } from '../worker/attempt.ts';
import { readRules } from '../worker/exit-rules.ts';
import { count, flag, list, ms, readFlags, seconds } from '../worker/flags.ts';
import { keepTask } from '../worker/keep-task.ts';
import { interrupted } from '../worker/leash.ts';
import { createWorkClient } from '../worker/work-client.ts';

/** Hosts an agent: whatever command it is given works on one task after the other until told to stop. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const given = readFlags(typed, { input, words: 'worker', env: surroundings.env });
  const find = () => daemonOf(flags, surroundings);
  const work = createWorkClient(find);
  const { signal: draining, env, cwd } = surroundings;
  const say = (task: string, text: string) => output.hint(`${task}: ${text}`);
  const over = new AbortController();
  const { url } = await find();
  const manner: Manner = {
    work,
    clock,
    env,
    cwd,
    url,
    token: typeof flags.token === 'string' ? flags.token : undefined,
    argv: ['/bin/sh', '-c', given.exec],
    stash: given.stash,
    rollback: given.rollback,
    resultFile: given.result,
    rules: readRules({
      exitCodes: given.exit_codes,
      quotaPattern: given.quota_pattern,
      authPattern: given.auth_pattern,
    }),
    timeoutMs: ms(given.timeout),
    silence:
      given.no_progress === undefined ? undefined : { afterMs: given.no_progress * 1000, isFatal: given.kill_silent },
    keep: (held) => keepTask(held, { work, clock, say }),
    passOn: (task) => passOn(task, given.quiet, output),
    told: afterGrace(draining, ms(given.grace), over.signal),
    forced: surroundings.insisted(),
    say,
  };
  output.hint(`${given.agent} waits for work at ${url} (Ctrl-C ends)`);
  try {
    const tally = await hostAgent({
      card: given,
      leaseClass: given.lease_class,
      limit: given.once ? 1 : (given.drain_after ?? Number.POSITIVE_INFINITY),
      work,
      clock,
      draining,
      attempt: (held) => attempt(held, manner),
      say: output.hint,
    });
    report(tally, given.agent, output);
    if (manner.forced.aborted) return interrupted(draining);
    return given.once && tally.failed + tally.lost > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    over.abort();
  }
};

const typed = z.object({
  agent: z.string(),
  exec: z.string().min(1),
  concurrency: count.max(256).default(1),
  type: z.string().optional(),
  capabilities: list,
  result: z.string().optional(),
  stash: z.string().min(1).optional(),
  rollback: z.string().optional(),
  timeout: seconds.optional(),
  // The parser of words takes --no-… for the opposite of a flag, which then is true by itself.
  no_progress: z
    .literal(true)
    .transform(() => undefined)
    .or(seconds)
    .optional(),
  kill_silent: flag,
  grace: z.coerce.number().min(0).optional(),
  once: flag,
  drain_after: count.optional(),
  lease_class: z.enum(['process', 'agent']).default('process'),
  exit_codes: z.string().optional(),
  quota_pattern: z.string().optional(),
  auth_pattern: z.string().optional(),
  quiet: flag,
});

/** With --json, standard output is for the answer alone. */
function passOn(task: string, isQuiet: boolean, output: Output): ReturnType<NonNullable<Manner['passOn']>> {
  const to = (stream: NodeJS.WriteStream) => async (text: string) => {
    if (!isQuiet && !stream.write(text)) await once(stream, 'drain');
  };
  const stderr = to(process.stderr);
  return {
    prefix: output.style('dim', `${task} | `),
    stdout: output.form === 'json' ? stderr : to(process.stdout),
    stderr,
  };
}

/** Running commands get so long to finish after the first signal; without a limit, as long as they need. */
function afterGrace(draining: AbortSignal, graceMs: number | undefined, over: AbortSignal): AbortSignal {
  const told = new AbortController();
  const wait = () => void clock.sleep(graceMs ?? 0, over).then(() => told.abort(draining.reason));
  if (graceMs !== undefined) draining.addEventListener('abort', wait, { once: true });
  return told.signal;
}

function report(tally: Tally, agent: string, output: Output): void {
  if (output.form === 'json') output.json({ agent, ...tally });
  else
    output.print(
      `ok agent=${agent} ${Object.entries(tally)
        .map(([word, number]) => `${word}=${number}`)
        .join(' ')}`,
    );
}
