import { createLog } from '../../src/log.ts';
import { findTestRedis } from './redis.ts';

/** Before the files run side by side: so that one of them does not wait for, or pay for, what all of them need. */
export async function setup(): Promise<void> {
  await findTestRedis(await createLog({ level: 'info', format: 'pretty' }));
}
