import { join } from 'node:path';
import { createIdentityRooms, type IdentityRooms } from '../../src/identity-rooms.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { aDirectory, aStore } from '../store/builders.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import type { RedisRoom } from '../support/redis-room.ts';

export interface IdentityRoom extends IdentityRooms {
  readonly store: Store;
  readonly clock: FakeClock;
}

/** Who there is, on a store of its own, with time that a test moves. */
export async function anIdentityRoom({ connection, keys, scripts }: RedisRoom, url?: string): Promise<IdentityRoom> {
  const clock = fakeClock(Date.UTC(2026, 0, 1));
  const store = await aStore({ url: url ?? `sqlite:${join(await aDirectory(), 'test.db')}`, clock });
  return {
    store,
    clock,
    ...createIdentityRooms({ store, connection, keys, scripts, clock, log: silentLog, service: 'test' }),
  };
}
