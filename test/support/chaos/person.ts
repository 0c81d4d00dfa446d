import Database from 'better-sqlite3';
import { systemClock as clock } from '../../../src/clock.ts';
import type { Random } from './plan.ts';

/** Whom the file names where one did the work by hand. */
export const A_PERSON = 'a person';

/** Somebody with the task file open, as an editor or a script has it. */
export class Person {
  readonly #path: string;
  readonly #random: Random;
  #added = 0;

  constructor(path: string, random: Random) {
    this.#path = path;
    this.#random = random;
  }

  get added(): number {
    return this.#added;
  }

  /** Nobody else can read or write meanwhile. */
  async lock(ms: number): Promise<void> {
    const file = this.#open();
    file.exec('begin exclusive');
    await clock.sleep(ms);
    file.exec('rollback');
    file.close();
  }

  /** A new task that needs an old one; an open one gets a new title and priority; another is done by hand. */
  edit(): void {
    const file = this.#open();
    const open = file.prepare(`select task_id from tasks where status = 'pending' order by random() limit 2`).all();
    const [first, second] = open.map((row) => (row as { task_id: string }).task_id);
    file.transaction(() => {
      const needs = JSON.stringify(first ? [first] : []);
      file
        .prepare(`insert into tasks (task_id, title, priority, depends_on) values (?, 'Thought of later', 1, ?)`)
        .run(`P-${++this.#added}`, needs);
      file
        .prepare(`update tasks set title = 'Renamed', priority = ? where task_id = ?`)
        .run(1 + this.#random.below(10), first ?? '');
      if (second)
        file
          .prepare(`update tasks set status = 'completed', assigned_agent = '${A_PERSON}' where task_id = ?`)
          .run(second);
    })();
    file.close();
  }

  #open(): Database.Database {
    return new Database(this.#path, { timeout: 10_000 });
  }
}
