import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Contest, findDeadlocks, type Holding, type Waiting } from '../../../src/coordinator/locks/deadlock.ts';

const holds = (agent: string, mode: Holding['mode'] = 'exclusive'): Holding => ({
  agent,
  lockId: `${agent}-holds`,
  token: '1',
  mode,
});
const waits = (agent: string, since: number, more: Partial<Waiting> = {}): Waiting => ({
  agent,
  lockId: `${agent}-waits-${since}`,
  mode: 'exclusive',
  since,
  priority: 100,
  ...more,
});
const lock = (name: string, holders: readonly Holding[], waiters: readonly Waiting[]): Contest => ({
  lock: name,
  holders,
  waiters,
});
const agentsOf = (contests: readonly Contest[], isApplying?: (agent: string) => boolean) =>
  findDeadlocks(contests, isApplying).map(({ cycle, victim }) => ({
    cycle: cycle.map(({ waiting }) => waiting.agent),
    victim: victim.waiting.agent,
  }));

describe('deadlocks', () => {
  test('two agents that wait for each other are one, and the younger gives way', () => {
    const contests = [lock('x', [holds('ann')], [waits('bob', 2)]), lock('y', [holds('bob')], [waits('ann', 1)])];
    expect(agentsOf(contests)).toEqual([{ cycle: ['bob', 'ann'], victim: 'bob' }]);
  });

  test('a line is none, however long', () => {
    const line = Array.from({ length: 2_000 }, (_, at) => waits(`w${at}`, at));
    expect(findDeadlocks([lock('x', [holds('ann')], line)])).toEqual([]);
  });

  test('a circle through the order of a line is found: a reader waits for the writer ahead of it', () => {
    const contests = [
      lock('x', [holds('a', 'shared')], [waits('b', 1), waits('c', 2, { mode: 'shared' })]),
      lock('y', [holds('c')], [waits('a', 3)]),
    ];
    const [found] = findDeadlocks(contests);
    const circle = found?.cycle.map(({ waiting, kind, behind }) => `${waiting.agent} ${kind} ${behind.agent}`);
    expect(new Set(circle)).toEqual(new Set(['a hard c', 'c soft b', 'b hard a']));
    expect(found?.victim.waiting.agent).toBe('a');
  });

  test('readers do not wait for readers', () => {
    const shared = { mode: 'shared' } as const;
    const contests = [
      lock('x', [holds('a', 'shared')], [waits('b', 1, shared)]),
      lock('y', [holds('b', 'shared')], [waits('a', 2, shared)]),
    ];
    expect(findDeadlocks(contests)).toEqual([]);
  });

  test('who applies a change gives way only if everyone in the circle does', () => {
    const contests = [lock('x', [holds('ann')], [waits('bob', 2)]), lock('y', [holds('bob')], [waits('ann', 1)])];
    expect(agentsOf(contests, (agent) => agent === 'bob')).toMatchObject([{ victim: 'ann' }]);
    expect(agentsOf(contests, () => true)).toMatchObject([{ victim: 'bob' }]);
  });

  test('among equally young ones the less urgent gives way', () => {
    const contests = [
      lock('x', [holds('ann')], [waits('bob', 1, { priority: 10 })]),
      lock('y', [holds('bob')], [waits('ann', 1, { priority: 90 })]),
    ];
    expect(agentsOf(contests)).toMatchObject([{ victim: 'bob' }]);
  });

  test('who only stands between two members of a circle is spared', () => {
    const contests = [
      lock('x', [holds('ann')], [waits('idle', 9), waits('bob', 2)]),
      lock('y', [holds('bob')], [waits('ann', 1)]),
    ];
    expect(agentsOf(contests)).toMatchObject([{ victim: 'bob' }]);
  });

  test('an agent that waits for its own lock is in nobody else’s way', () => {
    expect(findDeadlocks([lock('x', [holds('ann')], [waits('ann', 1)])])).toEqual([]);
  });

  test('agrees with a search through every order of every set of agents', () => {
    fc.assert(
      fc.property(anyContests, fc.subarray(AGENTS), (contests, applying) => {
        const isApplying = (agent: string) => applying.includes(agent);
        const found = findDeadlocks(contests, isApplying);
        expect(found.length > 0).toBe(everyCycle(contests).length > 0);

        let left: readonly Contest[] = contests;
        for (const { cycle, victim } of found) {
          const members = cycle.map(({ waiting }) => waiting.agent);
          const circles = everyCycle(left).map(canonical);
          expect(circles).toContain(canonical(members));
          const candidates = cycle.filter(({ waiting }) => !isApplying(waiting.agent));
          const eligible = candidates.length > 0 ? candidates : cycle;
          expect(eligible).toContain(victim);
          expect(victim.waiting.since).toBe(Math.max(...eligible.map(({ waiting }) => waiting.since)));
          left = left.map((one) => ({ ...one, waiters: one.waiters.filter((waiter) => waiter !== victim.waiting) }));
        }
        expect(everyCycle(left)).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });
});

const AGENTS = ['a', 'b', 'c', 'd', 'e'];
const LOCKS = ['w', 'x', 'y', 'z'];
const mode = fc.constantFrom('shared', 'exclusive') as fc.Arbitrary<Holding['mode']>;
const agent = fc.constantFrom(...AGENTS);

/** Any number of waits anywhere; a lock has one exclusive holder or several shared ones. */
const anyContests: fc.Arbitrary<Contest[]> = fc
  .tuple(
    ...LOCKS.map((name) =>
      fc.record({
        name: fc.constant(name),
        held: fc.oneof(
          agent.map((who) => [holds(who)]),
          fc.uniqueArray(agent, { maxLength: 3 }).map((all) => all.map((who) => holds(who, 'shared'))),
        ),
        line: fc.uniqueArray(fc.tuple(agent, mode, fc.nat(9)), { maxLength: 4, selector: ([who]) => who }),
      }),
    ),
  )
  .map((locks) =>
    locks.map(({ name, held, line }) =>
      lock(
        name,
        held,
        line.map(([who, wanted, since]) => waits(who, since, { lockId: `${name}-${who}`, mode: wanted })),
      ),
    ),
  );

/** The slow and obvious way: try every ordered choice of agents, and see whether each waits for the next. */
function everyCycle(contests: readonly Contest[]): string[][] {
  const waitsFor = (from: string, to: string) =>
    from !== to &&
    contests.some(({ holders, waiters }) =>
      waiters.some(
        (one, at) =>
          one.agent === from &&
          [...holders, ...waiters.slice(0, at)].some(
            (other) => other.agent === to && !(one.mode === 'shared' && other.mode === 'shared'),
          ),
      ),
    );
  return orders(AGENTS).filter((members) =>
    members.every((one, at) => waitsFor(one, members[(at + 1) % members.length] as string)),
  );
}

function orders(from: readonly string[]): string[][] {
  return from.flatMap((first) => {
    const rest = from.filter((other) => other !== first);
    return [[first], ...orders(rest).map((more) => [first, ...more])];
  });
}

const canonical = (members: readonly string[]): string => {
  const first = members.indexOf(members.toSorted()[0] as string);
  return [...members.slice(first), ...members.slice(0, first)].join('>');
};
