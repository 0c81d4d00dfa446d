import { Cluster } from 'ioredis';
import { ReeveError } from '../errors.ts';
import { type Service, service } from '../service.ts';
import type { Connection } from './connection.ts';

/**
 * A server that drops keys when its memory is full drops locks, and two agents hold what one may. Better not to begin:
 * later it would look like a fault of the agents. One without a limit of its memory, or that does not say, is let pass.
 */
export const refuseEviction = (connection: Connection): Service =>
  service('redis eviction policy', async () => {
    const client = connection.commands;
    const servers = client instanceof Cluster ? client.nodes('master') : [client];
    for (const server of servers) {
      const memory = await server.info('memory');
      const field = (name: string) => new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(memory)?.[1];
      const [policy, limit] = [field('maxmemory_policy'), field('maxmemory')];
      if (policy === undefined || policy === 'noeviction' || limit === undefined || limit === '0') continue;
      throw new ReeveError('REDIS_EVICTS', { address: connection.address, policy });
    }
    return undefined;
  });
