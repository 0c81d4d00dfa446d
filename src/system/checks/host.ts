import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { reason } from '../../errors.ts';
import { type Check, fail, ok, warn } from '../doctor.ts';

const LOW_SPACE_BYTES = 512 * 1024 * 1024;
const GIB = 1024 ** 3;

export function nodeCheck(version: string, wanted: readonly [number, number] = [24, 11]): Check {
  return {
    name: 'node',
    run: async () => {
      const [major = 0, minor = 0] = version.split('.').map(Number);
      const isOld = major < wanted[0] || (major === wanted[0] && minor < wanted[1]);
      return [
        isOld ? fail(`Node ${version} is too old`, `Use Node ${wanted.join('.')} or newer.`) : ok(`Node ${version}`),
      ];
    },
  };
}

export function dataDirCheck(dataDir: string): Check {
  return {
    name: 'data directory',
    run: async () => {
      const existing = await nearestExisting(dataDir);
      if (!(await stat(existing)).isDirectory())
        return [fail(`${existing} is a file, not a folder`, 'Set dataDir to a folder.')];
      try {
        await access(existing, constants.W_OK | constants.X_OK);
      } catch (error) {
        return [
          fail(
            `${dataDir} cannot be written: ${reason(error)}`,
            `Give this user write permission: chown $(id -u) ${existing}, or set dataDir.`,
          ),
        ];
      }
      const { bavail, bsize } = await statfs(existing);
      const free = bavail * bsize;
      const says = `${dataDir}, ${(free / GIB).toFixed(1)} GiB free`;
      return [
        free < LOW_SPACE_BYTES
          ? warn(says, 'Free some space: Redis and the database stop when the disk is full.')
          : ok(says),
      ];
    },
  };
}

/** Whether a daemon could listen there. `mine` is where one of ours already does. */
export function portCheck(host: string, port: number, mine: string | undefined): Check {
  return {
    name: 'port',
    run: async () => {
      if (mine) return [ok(`a daemon listens at ${mine}`)];
      if (port === 0) return [ok('any free port')];
      const problem = await listenProblem(host, port);
      if (!problem) return [ok(`${host}:${port} is free`)];
      return [
        fail(
          `${host}:${port} cannot be used: ${problem}`,
          `See who has it: ss -ltnp 'sport = :${port}'. Or choose another: --http-port PORT`,
        ),
      ];
    },
  };
}

function listenProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EADDRINUSE' ? 'another program has it' : error.message),
    );
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

async function nearestExisting(path: string): Promise<string> {
  try {
    await stat(path);
    return path;
  } catch {
    return nearestExisting(dirname(path));
  }
}
