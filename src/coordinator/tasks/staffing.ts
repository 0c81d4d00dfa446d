import type { Clock } from '../../clock.ts';
import { type Candidate, match, type WantedSkills } from '../agents/matcher.ts';
import type { Roster } from '../agents/roster.ts';
import type { TaskViews } from './task-view.ts';

export interface StaffingOptions {
  readonly roster: Pick<Roster, 'list'>;
  readonly views: Pick<TaskViews, 'ready'>;
  /** Those who wait for work at this very moment, registered or not. */
  readonly waiting: () => readonly Candidate[];
  readonly clock: Clock;
}

/** A ready task that stays where it is until an agent comes that can do it. */
export interface Unserved {
  readonly task_id: string;
  /** What is missing, in words. */
  readonly wants: string;
}

/** One that was silent for longer is not counted on; a model at work is heard of every quarter of an hour. */
const LIVE_MS = 3_600_000;
/** Further down the queue nobody need look: those are not next. */
const LOOKED_AT = 200;

/** Whether there is anyone for the work there is. */
export class Staffing {
  readonly #options: StaffingOptions;

  constructor(options: StaffingOptions) {
    this.#options = options;
  }

  /** The agents that are alive and take work. */
  async live(): Promise<Candidate[]> {
    const { roster, waiting, clock } = this.#options;
    const cards = await roster.list();
    const isLive = ({ last_seen, takes_work, status, tasks }: (typeof cards)[number]) =>
      takes_work === 'active' &&
      status !== 'finished' &&
      (tasks.length > 0 || (last_seen !== undefined && clock.now() - Date.parse(last_seen) < LIVE_MS));
    return [...cards.filter(isLive), ...waiting()];
  }

  /** What no living agent can take: a matter for people, not for silence. */
  async unserved(): Promise<Unserved[]> {
    const [agents, tasks] = await Promise.all([this.live(), this.#options.views.ready(LOOKED_AT)]);
    return tasks.flatMap((task) => {
      const wants = whatIsMissing(task, agents);
      return wants === undefined ? [] : [{ task_id: task.task_id, wants }];
    });
  }

  /** For one task: what is missing, or undefined if somebody can take it. */
  async missingFor(task: WantedSkills): Promise<string | undefined> {
    return whatIsMissing(task, await this.live());
  }
}

/** The least that would help: of several agents the one that lacks least speaks. */
function whatIsMissing(task: WantedSkills, agents: readonly Candidate[]): string | undefined {
  if (agents.length === 0) return 'any agent: none is there';
  const matches = agents.map((agent) => match(agent, task));
  if (matches.some(({ fits }) => fits)) return undefined;
  const lacking = matches.flatMap((one) => (one.fits ? [] : [one]));
  const skills = lacking
    .filter(({ lacks }) => lacks === 'capabilities')
    .sort((a, b) => a.missing.length - b.missing.length);
  const [nearest] = skills.length > 0 ? skills : lacking;
  return nearest?.lacks === 'capabilities'
    ? `an agent that can ${nearest.missing.join(', ')}`
    : `an agent of type ${nearest?.missing[0] ?? ''}`;
}
