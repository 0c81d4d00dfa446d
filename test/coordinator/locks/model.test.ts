import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IndexScrub } from '../../../src/coordinator/locks/index-scrub.ts';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { startCluster, type TestCluster } from '../../support/cluster.ts';
import { complaints } from './invariants.ts';
import { aLockRoom, held, type LockRoom, lockRoomOn, type OpenRoom, USUAL } from './room.ts';

/** More of them: LOCK_RUNS=1000 npx vitest run test/coordinator/locks/model.test.ts */
const RUNS = Number(process.env.LOCK_RUNS ?? 25);
const LOCKS = ['task:t-1', 'resource:db:a', 'resource:db:b'] as const;
const AGENTS = ['ann', 'bob', 'cyd', 'dee'] as const;
/** Time passes in steps far longer than a run takes, so that no real delay decides. */
const STEP_MS = 10_000;
const LEASE_STEPS = 6;
const GRACE_STEPS = { process: 0, agent: 12 } as const;
const PATIENCE_STEPS = { process: 1, agent: 6 } as const;

type Mode = 'exclusive' | 'shared';
type Class = 'process' | 'agent';
interface Held {
  agent: string;
  id: string;
  mode: Mode;
  class: Class;
  beatAt: number;
}
interface Waits {
  agent: string;
  id: string;
  mode: Mode;
  age: number;
  aliveUntil: number;
}

/** Leases, lines and time as people would keep them on paper. */
class Paper {
  /** In a cluster, several locks are tried one by one: the first that is not to be had is the one waited for. */
  readonly isSpread: boolean;
  now = 0;
  asked = 0;
  ids = 0;
  readonly holders = new Map<string, Held[]>(LOCKS.map((lock) => [lock, []]));
  readonly waiters = new Map<string, Waits[]>(LOCKS.map((lock) => [lock, []]));
  readonly tokens = new Map<string, number>();

  constructor(isSpread: boolean) {
    this.isSpread = isSpread;
  }
  live(lock: string): Held[] {
    return (this.holders.get(lock) ?? []).filter((one) => this.now < one.beatAt + LEASE_STEPS + GRACE_STEPS[one.class]);
  }
  line(lock: string): Waits[] {
    return (this.waiters.get(lock) ?? [])
      .filter(({ aliveUntil }) => this.now < aliveUntil)
      .sort((a, b) => a.age - b.age);
  }
  isFree(lock: string, mode: Mode, id: string, age: number): boolean {
    const excludes = (other: Mode) => mode === 'exclusive' || other === 'exclusive';
    const ahead = this.line(lock).filter((one) => one.id !== id && one.age < age);
    return !this.live(lock).some((one) => excludes(one.mode)) && !ahead.some((one) => excludes(one.mode));
  }
  grant(lock: string, grant: Held): void {
    this.holders.set(lock, [...this.live(lock), grant]);
    this.leave(lock, grant.id);
  }
  leave(lock: string, id: string): void {
    this.waiters.set(
      lock,
      (this.waiters.get(lock) ?? []).filter((one) => one.id !== id),
    );
  }
}

type Room = Pick<OpenRoom, 'locks' | 'connection' | 'keys' | 'pass'>;
type Step = fc.AsyncCommand<Paper, Room>;

class Acquire implements Step {
  readonly #agent: string;
  readonly #locks: readonly (readonly [string, Mode])[];
  readonly #waits: boolean;
  readonly #class: Class;

  constructor(agent: string, locks: readonly (readonly [string, Mode])[], waits: boolean, leaseClass: Class) {
    this.#agent = agent;
    const inOrder = [...locks].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#locks = inOrder.map(([lock, mode]) => [lock, lock.startsWith('task') ? 'exclusive' : mode]);
    this.#waits = waits;
    this.#class = leaseClass;
  }
  check(paper: Readonly<Paper>): boolean {
    const holds = this.#locks.some(([lock]) => paper.live(lock).some(({ agent }) => agent === this.#agent));
    const waiting = LOCKS.flatMap((lock) =>
      paper
        .line(lock)
        .filter(({ agent }) => agent === this.#agent)
        .map(() => lock),
    );
    const names = this.#locks.map(([lock]) => lock);
    const same = (lock: string) =>
      paper
        .line(lock)
        .every(
          ({ agent, mode }) => agent !== this.#agent || this.#locks.some(([at, as]) => at === lock && as === mode),
        );
    // Whoever waits asks for the same again: for this very set.
    return !holds && waiting.every((lock) => names.includes(lock as never) && same(lock));
  }
  async run(paper: Paper, room: Room): Promise<void> {
    const mine = this.#locks.flatMap(([lock]) => paper.line(lock).filter(({ agent }) => agent === this.#agent));
    const id = mine[0]?.id ?? `${this.#agent}.${paper.ids++}`;
    const age = Math.min(...mine.map((one) => one.age), paper.asked++);
    const ask = () =>
      room.locks.acquire({
        agent: this.#agent,
        lockId: id,
        locks: this.#locks.map(([lock, mode]) => ({ lock: parseLock(lock), mode })),
        waitMs: this.#waits ? 600_000 : 0,
        leaseClass: this.#class,
        leaseMs: LEASE_STEPS * STEP_MS,
      });
    const outcome = await ask();
    const blocked = this.#locks.filter(([lock, mode]) => !paper.isFree(lock, mode, id, age));
    expect(outcome.outcome).toBe(blocked.length === 0 ? 'granted' : this.#waits ? 'queued' : 'held');
    // Asking again, as after a lost reply, is the same request.
    const again = await ask();
    expect(again.outcome).toBe(outcome.outcome);
    if (outcome.outcome === 'granted' && again.outcome === 'granted') {
      expect(again.grants.map(({ token }) => token)).toEqual(outcome.grants.map(({ token }) => token));
      for (const { lock, token } of outcome.grants) {
        const name = lock.kind === 'resource' ? `resource:${lock.type}:${lock.id}` : `task:${lock.id}`;
        expect(token).toBeGreaterThan(paper.tokens.get(name) ?? 0);
        paper.tokens.set(name, token);
      }
      for (const [lock, mode] of this.#locks)
        paper.grant(lock, { agent: this.#agent, id, mode, class: this.#class, beatAt: paper.now });
    } else {
      const first = this.#locks.findIndex(([lock]) => lock === blocked[0]?.[0]);
      // What was had before it is given back, and with it the place in that line.
      if (paper.isSpread) for (const [lock] of this.#locks.slice(0, first)) paper.leave(lock, id);
      for (const [lock, mode] of this.#waits ? blocked.slice(0, paper.isSpread ? 1 : undefined) : []) {
        paper.leave(lock, id);
        const aliveUntil = paper.now + PATIENCE_STEPS[this.#class];
        paper.waiters.get(lock)?.push({ agent: this.#agent, id, mode, age, aliveUntil });
      }
    }
    await compare(paper, room);
  }
  toString = () =>
    `${this.#agent} asks for ${this.#locks.map(([lock, mode]) => `${lock} ${mode}`).join(' and ')}${this.#waits ? ', waits' : ''} (${this.#class})`;
}

class Beat implements Step {
  readonly #agent: string;
  readonly #lock: string;
  constructor(agent: string, lock: string) {
    this.#agent = agent;
    this.#lock = lock;
  }
  check = (paper: Readonly<Paper>) => (paper.holders.get(this.#lock) ?? []).some(({ agent }) => agent === this.#agent);
  async run(paper: Paper, room: Room): Promise<void> {
    const one = (paper.holders.get(this.#lock) ?? []).find(({ agent }) => agent === this.#agent) as Held;
    const lives = paper.live(this.#lock).includes(one);
    const outcome = await room.locks.heartbeat(held(this.#agent, this.#lock, one.id), LEASE_STEPS * STEP_MS);
    expect(outcome.outcome).toBe(lives ? 'extended' : 'lost');
    if (lives) one.beatAt = paper.now;
    await compare(paper, room);
  }
  toString = () => `${this.#agent} beats for ${this.#lock}`;
}

class Release implements Step {
  readonly #agent: string;
  readonly #lock: string;
  constructor(agent: string, lock: string) {
    this.#agent = agent;
    this.#lock = lock;
  }
  check = (paper: Readonly<Paper>) => (paper.holders.get(this.#lock) ?? []).some(({ agent }) => agent === this.#agent);
  async run(paper: Paper, room: Room): Promise<void> {
    const one = (paper.holders.get(this.#lock) ?? []).find(({ agent }) => agent === this.#agent) as Held;
    const lives = paper.live(this.#lock).includes(one);
    const give = () => room.locks.release(held(this.#agent, this.#lock, one.id));
    expect(await give()).toMatchObject([{ outcome: lives ? 'released' : 'lost' }]);
    expect(await give()).toMatchObject([{ outcome: lives ? 'already' : 'lost' }]);
    paper.holders.set(
      this.#lock,
      (paper.holders.get(this.#lock) ?? []).filter((other) => other !== one),
    );
    await compare(paper, room);
  }
  toString = () => `${this.#agent} gives ${this.#lock} back`;
}

class Leave implements Step {
  readonly #agent: string;
  readonly #lock: string;
  constructor(agent: string, lock: string) {
    this.#agent = agent;
    this.#lock = lock;
  }
  check = (paper: Readonly<Paper>) => paper.line(this.#lock).some(({ agent }) => agent === this.#agent);
  async run(paper: Paper, room: Room): Promise<void> {
    const one = paper.line(this.#lock).find(({ agent }) => agent === this.#agent) as Waits;
    expect(await room.locks.cancelWait(held(this.#agent, this.#lock, one.id))).toBe(true);
    paper.leave(this.#lock, one.id);
    await compare(paper, room);
  }
  toString = () => `${this.#agent} leaves the line for ${this.#lock}`;
}

class Pass implements Step {
  readonly #steps: number;
  constructor(steps: number) {
    this.#steps = steps;
  }
  check = () => true;
  async run(paper: Paper, room: Room): Promise<void> {
    paper.now += this.#steps;
    room.pass(this.#steps * STEP_MS);
    await compare(paper, room);
  }
  toString = () => `${this.#steps} steps pass`;
}

class Sweep implements Step {
  check = () => true;
  async run(paper: Paper, room: Room): Promise<void> {
    await sweepOnce(room.locks);
    await new IndexScrub(room.locks).all();
    expect(await complaints(room, true)).toEqual([]);
    await compare(paper, room);
  }
  toString = () => 'a sweep';
}

class Vanish implements Step {
  readonly #lock: string;
  constructor(lock: string) {
    this.#lock = lock;
  }
  check = (paper: Readonly<Paper>) => (paper.holders.get(this.#lock) ?? []).length === 1;
  async run(paper: Paper, room: Room): Promise<void> {
    await room.connection.commands.del(room.locks.scripts.lockKeys(parseLock(this.#lock)).lock);
    paper.holders.set(this.#lock, []);
  }
  toString = () => `someone deletes ${this.#lock}`;
}

async function compare(paper: Paper, room: Room): Promise<void> {
  for (const lock of LOCKS) {
    const view = await room.locks.inspect(parseLock(lock));
    const holders = view.holders
      .filter(({ state }) => state !== 'expired')
      .map(({ agent, mode }) => `${agent} ${mode}`);
    expect(holders.sort()).toEqual(
      paper
        .live(lock)
        .map(({ agent, mode }) => `${agent} ${mode}`)
        .sort(),
    );
    const waiters = view.waiters.filter(({ alive }) => alive).map(({ agent, mode }) => `${agent} ${mode}`);
    expect(waiters).toEqual(paper.line(lock).map(({ agent, mode }) => `${agent} ${mode}`));
  }
  expect(await complaints(room)).toEqual([]);
}

const agent = fc.constantFrom(...AGENTS);
const lock = fc.constantFrom(...LOCKS);
const mode = fc.constantFrom<Mode>('exclusive', 'shared');
const one = fc.tuple(lock, mode).map((each) => [each]);
const several = fc.uniqueArray(fc.tuple(lock, mode), { minLength: 2, maxLength: 3, selector: ([name]) => name });
const steps = fc.commands(
  [
    fc
      .tuple(
        agent,
        fc.oneof({ weight: 3, arbitrary: one }, { weight: 1, arbitrary: several }),
        fc.boolean(),
        fc.constantFrom<Class>('process', 'agent'),
      )
      .map((given) => new Acquire(...given)),
    fc
      .tuple(agent, one, fc.constant(true), fc.constantFrom<Class>('process', 'agent'))
      .map((given) => new Acquire(...given)),
    fc.tuple(agent, lock).map((given) => new Beat(...given)),
    fc.tuple(agent, lock).map((given) => new Release(...given)),
    fc.tuple(agent, lock).map((given) => new Leave(...given)),
    fc.integer({ min: 1, max: 7 }).map((given) => new Pass(given)),
    fc.constant(new Sweep()),
    lock.map((given) => new Vanish(given)),
  ],
  { maxCommands: 60, size: 'max' },
);

let room: LockRoom;
let cluster: TestCluster;
let spread: OpenRoom;
beforeAll(async () => {
  room = await aLockRoom();
  cluster = await startCluster();
  spread = await lockRoomOn(cluster.target, { mode: 'cluster' });
});
afterAll(async () => {
  await room?.stop();
  await spread?.connection.stop();
  await cluster?.stop();
});

test('locks keep to the paper, whatever is asked of them in which order', async () => {
  const property = fc.asyncProperty(steps, async (commands) => {
    await room.reset();
    await fc.asyncModelRun(() => ({ model: new Paper(false), real: room }), commands);
  });
  await fc.assert(property, { numRuns: RUNS });
}, 300_000);

test('locks on a cluster keep to the same paper', async () => {
  const property = fc.asyncProperty(steps, async (commands) => {
    spread.time.shiftMs = 0;
    spread.limits = USUAL;
    await cluster.flush();
    await fc.asyncModelRun(() => ({ model: new Paper(true), real: spread }), commands);
  });
  await fc.assert(property, { numRuns: Math.ceil(RUNS / 4) });
}, 300_000);
