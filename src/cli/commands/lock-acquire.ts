import { randomUUID } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import { asReeveError } from '../../errors.ts';
import { daemonOf } from '../client.ts';
import { askForLock, type LockInput } from '../lock-client.ts';
import type { CommandModule } from '../main.ts';
import { reportFailure } from '../output.ts';
import { grantLine, heldLine, isHeldBack } from '../views/lock.ts';

/** Stays in line as long as --wait says. One line, the same with and without a terminal: its reader may be a model. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const client = await daemonOf(flags, surroundings);
  const asked = {
    ...input,
    wait: typeof input.wait === 'number' ? input.wait : 0,
    lock_id: typeof input.lock_id === 'string' ? input.lock_id : randomUUID(),
  } as LockInput;
  try {
    const held = await askForLock(client, asked, {
      clock: systemClock,
      signal: surroundings.signal,
      onQueued: ({ hold }) => hold && output.hint(hold.because),
    });
    if (output.form === 'json') output.json(held);
    else output.print(grantLine(held));
    return 0;
  } catch (thrown) {
    const error = asReeveError(thrown);
    if (output.form !== 'json' && isHeldBack(error)) output.print(heldLine(error));
    return reportFailure(output, error);
  }
};
