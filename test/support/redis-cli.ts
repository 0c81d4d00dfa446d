import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findTestRedis } from './redis.ts';

export interface FoundProgram {
  readonly program: string;
  /** What it needs in its environment to find its libraries. */
  readonly env: Readonly<Record<string, string>>;
}

/** The redis-cli that comes with the server that tests run; of a Valkey it has another name. */
export async function findRedisCli(): Promise<FoundProgram> {
  const { program, libraryPath } = await findTestRedis();
  const [plain, other] = ['redis-cli', 'valkey-cli'].map((name) => join(dirname(program), name)) as [string, string];
  return { program: existsSync(plain) ? plain : other, env: libraryPath ? { LD_LIBRARY_PATH: libraryPath } : {} };
}
