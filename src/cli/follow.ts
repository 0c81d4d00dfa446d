import { systemClock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Call, Client } from './client.ts';

const AGAIN_MS = 1_000;

/**
 * Follows without an end: when the daemon stops, waits for the next one and goes on after the last thing told.
 * Only the first attempt may fail.
 */
export async function* followOn(
  find: () => Promise<Client>,
  call: Call & { readonly signal: AbortSignal },
  hint: (text: string) => void,
): AsyncIterable<unknown> {
  let place: string | undefined;
  for (let isBack = true; !call.signal.aborted; isBack = false) {
    try {
      const client = await find();
      for await (const { cursor, item } of client.follow(call, place)) {
        place = cursor;
        isBack = true;
        yield item;
      }
    } catch (error) {
      const isGone = !(error instanceof ReeveError) || error.row.exit === 8;
      if (call.signal.aborted || !isGone || place === undefined) throw error;
    }
    if (isBack && !call.signal.aborted) hint('the daemon is gone; waiting for it (Ctrl-C ends)');
    await systemClock.sleep(AGAIN_MS, call.signal);
  }
}
