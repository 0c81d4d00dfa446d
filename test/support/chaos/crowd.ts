import { findRedisCli } from '../redis-cli.ts';
import type { Board, Held } from './board.ts';
import { ModernAgent } from './modern-agent.ts';
import type { ChaosSize, Random } from './plan.ts';
import { ProcessAgent, shellCommand, workerCommand } from './process-agent.ts';
import { RawAgent } from './raw-agent.ts';
import type { World } from './world.ts';

interface Agent {
  readonly name: string;
  run(): Promise<void>;
  stop(): void;
  kill(): Held | undefined;
}
type Breed = 'modern' | 'worker' | 'raw' | 'shell';
interface Member {
  readonly agent: Agent;
  readonly breed: Breed;
  readonly life: Promise<void>;
}

export interface CrowdOptions {
  readonly world: World;
  readonly board: Board;
  readonly random: Random;
  readonly size: ChaosSize;
}

/** All agents. One that is killed has a successor: the same started again, or another. */
export class Crowd {
  readonly #options: CrowdOptions;
  readonly #agents: Member[] = [];
  /** What dead agents held, of whom some turn out to have been only asleep. */
  readonly #asleep: Held[] = [];
  readonly #killed: Record<Breed, number> = { modern: 0, worker: 0, raw: 0, shell: 0 };
  #made = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
  }

  async gather(): Promise<void> {
    const { modern, workers, raw } = this.#options.size;
    const breeds = [...Array(modern).fill('modern'), ...Array(workers).fill('worker'), ...Array(raw).fill('raw')];
    breeds[breeds.length - 1] = 'shell';
    for (const breed of breeds as Breed[]) await this.#start(breed);
  }

  async killOne(): Promise<void> {
    const { random } = this.#options;
    const at = random.below(this.#agents.length);
    const [victim] = this.#agents.splice(at, 1) as [Member];
    const held = victim.agent.kill();
    await victim.life;
    this.#killed[victim.breed]++;
    const isSame = random.chance(0.5);
    if (held && !isSame) this.#asleep.push(held);
    await this.#start(victim.breed, isSame ? victim.agent.name : undefined);
  }

  get killed(): Readonly<Record<Breed, number>> {
    return this.#killed;
  }

  async disperse(): Promise<void> {
    for (const { agent, breed } of this.#agents) {
      if (breed === 'shell') agent.kill();
      else agent.stop();
    }
    await Promise.all(this.#agents.map(({ life }) => life));
  }

  /** Those who only slept wake up and complete what they had: all of it is somebody else's by now. */
  async wakeSleepers(): Promise<number> {
    const { world, board } = this.#options;
    for (const { task, agent, lockId, token } of this.#asleep) {
      const response = await fetch(`${world.url}/tasks/${task}/complete`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agent, lock_id: lockId, fencing_token: token, note: 'too late' }),
      });
      const said = (await response.json()) as { code?: string; again?: boolean };
      // One whose last completion was heard before it died is told so.
      const isRight = said.code === 'LEASE_LOST' || said.again === true;
      if (!isRight) board.violations.push(`a late completion of ${task} was answered with ${JSON.stringify(said)}`);
    }
    return this.#asleep.length;
  }

  killAll(): void {
    for (const { agent } of this.#agents) agent.kill();
  }

  async #start(breed: Breed, name = `${breed}-${++this.#made}`): Promise<void> {
    const agent = await this.#make(breed, name);
    this.#agents.push({ agent, breed, life: agent.run() });
  }

  async #make(breed: Breed, name: string): Promise<Agent> {
    const { world, board, random } = this.#options;
    const { cwd, url } = world;
    switch (breed) {
      case 'modern':
        return new ModernAgent({ name, url, board, random: random.fork() });
      case 'raw':
        return new RawAgent({ name, client: world.plainClient(), board, random: random.fork() });
      case 'worker':
        return new ProcessAgent({ name, cwd, command: workerCommand(name) });
      case 'shell': {
        const cli = await findRedisCli();
        return new ProcessAgent({ name, cwd, env: cli.env, command: shellCommand(name, cli, world.redis.port) });
      }
    }
  }
}
