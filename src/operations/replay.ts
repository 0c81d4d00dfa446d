import { z } from 'zod';
import { jittered } from '../clock.ts';
import { asReeveError, ReeveError, reason } from '../errors.ts';
import { ACCESS_NAMES, ROLE_NAMES } from '../identity/permissions.ts';
import type { JournalRow } from '../journal/journal.ts';
import type { ReplayLock } from '../journal/replay-lock.ts';
import type { Logger } from '../log.ts';
import { every, type Service } from '../service.ts';
import { type Caller, type Context, execute, type Operation } from './operation.ts';
import type { Rooms } from './rooms.ts';

export interface ReplayOptions {
  readonly rooms: Rooms;
  readonly operations: readonly Operation[];
  readonly lock: ReplayLock;
  readonly log: Logger;
}

const PERIOD_MS = 1_000;

/** Does what the journal holds as soon as Redis is back. */
export const replaying = (options: ReplayOptions): Service =>
  every('journal', {
    clock: options.rooms.clock,
    pauseMs: () => jittered(PERIOD_MS),
    tick: async (signal) => {
      if (!(await options.rooms.journal.next())) return;
      const { done, parked } = await replayAlone(options, signal);
      if (done + parked > 0) options.log.info('journal replayed', { done, parked });
    },
    onError: (error) => options.log.debug('the journal waits on', { problem: reason(error) }),
  });

export interface Replayed {
  readonly done: number;
  readonly parked: number;
}

/** One daemon at a time, so that the order is kept. */
async function replayAlone(options: ReplayOptions, signal?: AbortSignal): Promise<Replayed> {
  if (!(await options.lock.take())) return { done: 0, parked: 0 };
  try {
    return await replayOnce(options, signal);
  } finally {
    await options.lock.release();
  }
}

/** All that waits, in order. What Redis is away for again stays; what is refused is put aside with the reason. */
export async function replayOnce(options: ReplayOptions, signal?: AbortSignal): Promise<Replayed> {
  const { rooms, lock } = options;
  const counts = { done: 0, parked: 0 };
  for (let row = await rooms.journal.next(); row && !signal?.aborted; row = await rooms.journal.next()) {
    await lock.keep();
    await rooms.journal.trying(row);
    const { state, outcome } = await attempt(options, row);
    await rooms.journal.end(row, state, outcome);
    counts[state] += 1;
  }
  return counts;
}

async function attempt(
  options: ReplayOptions,
  row: JournalRow,
): Promise<{ state: 'done' | 'parked'; outcome: string }> {
  const { rooms, operations } = options;
  const operation = operations.find(({ name }) => name === row.operation);
  const context: Context = {
    rooms,
    operations,
    caller: readCaller(row.caller),
    signal: new AbortController().signal,
  };
  try {
    if (!operation) throw new ReeveError('INTERNAL', { problem: `no operation ${row.operation}` });
    await execute(operation, context, operation.input.parse(JSON.parse(row.input)) as never);
    return { state: 'done', outcome: 'done' };
  } catch (thrown) {
    const error = rooms.explain(thrown) ?? asReeveError(thrown);
    if (isAway(error)) throw error;
    // Tried before, and the answer was lost: then the very thing that is in the way is what was asked for.
    if (row.attempts > 0 && operation?.journal?.doneIf.includes(error.code)) {
      return { state: 'done', outcome: `done before: ${error.code}` };
    }
    return { state: 'parked', outcome: `${error.code}: ${error.message}` };
  }
}

/** Whether Redis was away, so that it is worth asking again. */
const isAway = ({ code }: ReeveError): boolean =>
  code === 'REDIS_UNAVAILABLE' || code === 'REDIS_REPLY_UNKNOWN' || code === 'REDIS_REFUSED';

const access = z.array(z.enum(ACCESS_NAMES));
const callerSchema = z.object({
  id: z.string(),
  roles: z.array(z.enum(ROLE_NAMES)).optional(),
  access,
  own: access,
  session: z.string().optional(),
  door: z.enum(['http', 'mcp']).optional(),
  ip: z.string().optional(),
  userAgent: z.string().optional(),
});

function readCaller(text: string): Caller {
  const { access: may, own, ...caller } = callerSchema.parse(JSON.parse(text));
  return { ...caller, access: new Set(may), own: new Set(own) };
}
