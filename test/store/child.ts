import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/clock.ts';
import { ReeveError } from '../../src/errors.ts';
import { createLog, silentLog } from '../../src/log.ts';
import { openStore, type StoreOptions } from '../../src/store/database.ts';
import { anEvent, archive, cursorOf } from './archive.ts';

/** A process of its own with a store, for the tests that need two of them, or one that dies. One line for each answer. */
const [task, url, extra] = process.argv.slice(2);
const say = (line: unknown) => process.stdout.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
const options: StoreOptions = { url, dataDir: '.', clock: systemClock, log: silentLog };

switch (task) {
  case 'migrate': {
    const applied: unknown[] = [];
    const destination = { write: (line: string) => void applied.push(JSON.parse(line).migration) };
    const log = await createLog({ level: 'info', format: 'json', destination });
    say('ready');
    await once(createInterface(process.stdin), 'line');
    await using _store = await openStore({ ...options, log, migrations: new URL(extra!) });
    say(applied);
    process.stdin.destroy();
    break;
  }
  case 'archive': {
    await using store = await openStore(options);
    for (let from = Number((await cursorOf(store))?.id ?? 0) + 1; ; ) {
      const rows = Array.from({ length: 1 + (from % 20) }, (_, i) => anEvent({ id: String(from + i) }));
      await archive(store, rows);
      from += rows.length;
      say(String(from - 1));
    }
  }
  case 'open': {
    // Root may write anything, so the question is put as nobody.
    if (extra === 'unprivileged' && process.getuid?.() === 0) {
      process.setgid?.(65534);
      process.setuid?.(65534);
    }
    const outcome = await openStore(options).then(
      (store) => store.stop(),
      (error: unknown) => (error instanceof ReeveError ? { code: error.code, message: error.message } : String(error)),
    );
    const modules = Object.keys(createRequire(import.meta.url).cache);
    const drivers = ['better-sqlite3', 'pg'].filter((name) => modules.some((file) => file.includes(`/${name}/lib/`)));
    say({ outcome: outcome ?? 'opened', drivers });
  }
}
