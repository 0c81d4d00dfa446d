import type { Clock } from '../clock.ts';
import { isoTime } from '../clock.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { isInForce } from './delegation.ts';
import type { DelegationStore } from './delegation-store.ts';
import type { ApprovalDesk } from './desk.ts';
import type { Escalation } from './escalation.ts';
import type { People } from './people.ts';
import { agenda, backlog, raise, remind } from './scripts.ts';
import { Standing } from './standing.ts';
import type { Terms } from './terms.ts';

export interface TimekeeperOptions {
  readonly tasks: Tasks;
  readonly desk: ApprovalDesk;
  readonly delegations: DelegationStore;
  readonly people: People;
  readonly terms: () => Promise<Terms>;
  readonly escalation: Escalation;
  readonly clock: Clock;
}

export interface Tick {
  /** Votes of people who left or lost their role: they count no more. */
  readonly lapsed: number;
  readonly reminded: number;
  readonly asked: number;
  readonly closed: number;
  readonly stays: number;
  readonly raised: number;
}

/** So many of each kind in one turn; the rest comes with the next. */
const BATCH = 500;
/** What nobody tells us of (roles, delegations that ran out) is looked for so often. */
const REST_SECONDS = 10;

/** What the clock does to open questions: it reminds, escalates, finds others for those who cannot answer. It never answers. */
export class Timekeeper {
  readonly standing: Standing;
  readonly #options: TimekeeperOptions;
  #staff: string | undefined;
  #day: string | undefined;
  #restSeconds = 0;

  constructor(options: TimekeeperOptions) {
    this.#options = options;
    const { connection, keys, scripts } = options.tasks.store;
    this.standing = new Standing({ connection, keys, scripts, people: options.people });
  }

  /** How long nothing is to do, as far as one can know. */
  get restSeconds(): number {
    return this.#restSeconds;
  }

  /** All that is due now. Whatever was missed happens once, not once for each time it was missed. */
  async tickOnce(): Promise<Tick> {
    await this.standing.mirrorOnce();
    const counts = { asked: 0, closed: 0, stays: 0, none: 0 };
    // Only if anything about people or delegations is otherwise than at the last look.
    const staff = await this.#staffNow();
    const isOther = staff !== this.#staff;
    const lapsed = isOther ? await this.#recount() : 0;
    for (const id of isOther ? await this.#open() : []) counts[await this.#options.escalation.reassign(id)]++;
    this.#staff = staff;
    const { day, due, toRemind } = await this.#agenda();
    for (const id of this.#own(due)) counts[await this.#options.escalation.escalate(id)]++;
    const reminded = await this.#remind(this.#own(toRemind));
    const raised = await this.#relieve();
    if (day !== this.#day) await this.#turnDay(day);
    const { nextSeconds = REST_SECONDS } = await this.#agenda();
    this.#restSeconds = Math.min(REST_SECONDS, Math.max(1, nextSeconds));
    const { asked, closed, stays } = counts;
    return { lapsed, reminded, asked, closed, stays, raised };
  }

  async #staffNow(): Promise<string> {
    const { people, delegations, clock } = this.#options;
    const at = isoTime(clock);
    const [everyone, chains] = await Promise.all([people.all(), delegations.all()]);
    return JSON.stringify([everyone, chains.filter((one) => isInForce(one, at))]);
  }

  /** Among those tasks, too, about which everybody answered: they would wait for ever for a vote that is none any more. */
  async #recount(): Promise<number> {
    const { tasks, escalation } = this.#options;
    const { connection, keys } = tasks.store;
    let lapsed = 0;
    for (const task of this.#own(await connection.commands.zrange(keys.tasksByState('REVIEWING'), '0', '-1'))) {
      lapsed += (await escalation.recount(task)).length;
    }
    return lapsed;
  }

  async #open(): Promise<string[]> {
    const { connection, keys } = this.#options.tasks.store;
    return this.#own(await connection.commands.zrange(keys.approvalQueue(), '0', '-1'));
  }

  /** Other projects see to theirs. */
  #own(ids: readonly string[]): string[] {
    return ids.filter((id) => id.startsWith(this.#options.tasks.store.head));
  }

  async #agenda() {
    const { scripts, keys } = this.#options.tasks.store;
    const queues = { queue: keys.approvalQueue(), reminders: keys.approvalReminders() };
    return scripts.run(agenda, queues, { limit: BATCH });
  }

  async #remind(ids: readonly string[]): Promise<number> {
    const { tasks, terms } = this.#options;
    const { reminders: parts } = await terms();
    let reminded = 0;
    for (const approval of ids) {
      const args = { ...tasks.store.common(), by: 'system', approval, parts };
      const [word] = await tasks.store.scripts.run(remind, {}, args);
      reminded += Number(word === 'REMINDED');
    }
    return reminded;
  }

  /** A backlog makes what is due first more urgent, and is told. */
  async #relieve(): Promise<number> {
    const { tasks, terms } = this.#options;
    const { scripts, keys, connection } = tasks.store;
    const { backlog: limit, onCall: on_call } = await terms();
    const where = { queue: keys.approvalQueue(), backlog: keys.approvalBacklog(), events: keys.events('approval') };
    const [word] = await scripts.run(backlog, where, { limit, on_call });
    if (word !== 'BEGAN' && word !== 'GOES_ON') return 0;
    const first = await connection.commands.zrange(keys.approvalQueue(), '0', String(BATCH - 1));
    let raised = 0;
    for (const approval of this.#own(first)) {
      const [said] = await scripts.run(raise, {}, { ...tasks.store.common(), by: 'system', approval });
      raised += Number(said === 'RAISED');
    }
    return raised;
  }

  /** The counts of today begin at nought for everybody, also for who does nothing today. */
  async #turnDay(day: string): Promise<void> {
    const { people, desk } = this.#options;
    for (const { id } of await people.all()) await desk.stats(id, 1);
    this.#day = day;
  }
}
