import type { Redis } from 'ioredis';

/** All that a server has, to the byte. */
export async function everything(plain: Redis): Promise<unknown> {
  const keys = (await plain.keys('*')).sort();
  return Promise.all(
    keys.map(async (key) => [key, (await plain.dumpBuffer(key))?.toString('hex'), await plain.type(key)]),
  );
}
