import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createLog } from '../../src/log.ts';
import { findTestRedis } from './redis.ts';

/** Before the files run side by side: so that one of them does not wait for, or pay for, what all of them need. */
export async function setup(): Promise<void> {
  const build = join(import.meta.dirname, '../../scripts/build.ts');
  execFileSync(process.execPath, [build, '--if-stale'], { stdio: 'inherit' });
  await findTestRedis(await createLog({ level: 'info', format: 'pretty' }));
}
