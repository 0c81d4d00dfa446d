import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assign } from '../../src/approvals/assignment.ts';
import { type Delegation, MOST_HOPS, type Routing, route } from '../../src/approvals/delegation.ts';
import type { Petition } from '../../src/approvals/policy.ts';
import { policy } from './room.ts';

const AT = '2026-03-18T12:00:00.000Z';
const PETITION: Petition = {
  type: 'infrastructure',
  resources: [{ type: 'service', id: 'prod-api' }],
  risk: 60,
  authorRoles: [],
};
const hop = (owner_id: string, delegate_to: string, more: Partial<Delegation> = {}): Delegation => ({
  policy_id: `${owner_id}-${delegate_to}`,
  kind: 'instead',
  owner_id,
  delegate_to,
  conditions: {},
  cascade: true,
  active: true,
  created_at: AT,
  ...more,
});
const routing = (delegations: readonly Delegation[], more: Partial<Routing> = {}): Routing => ({
  delegations,
  petition: PETITION,
  at: AT,
  isBarred: () => false,
  ...more,
});
const to = (owner: string, delegations: readonly Delegation[], more: Partial<Routing> = {}) =>
  route(owner, routing(delegations, more)).to;

describe('a delegation', () => {
  test('is followed where its conditions hold: for risky infrastructure on prod only Carol is asked', () => {
    const chain = [
      hop('alice', 'bob', { conditions: { task_types: ['infrastructure'], risk_above: 50 } }),
      hop('bob', 'carol', { conditions: { resource_patterns: ['prod-*'] } }),
    ];
    expect(route('alice', routing(chain))).toEqual({ to: 'carol', chain: ['alice', 'bob', 'carol'] });
    expect(to('alice', chain, { petition: { ...PETITION, risk: 50 } })).toBe('alice');
    expect(to('alice', chain, { petition: { ...PETITION, resources: [] } })).toBe('bob');
  });

  test('ends with its time, when it is switched off, and where it does not cascade', () => {
    expect(to('a', [hop('a', 'b', { expires_at: AT })])).toBe('a');
    expect(to('a', [hop('a', 'b', { expires_at: '2026-03-18T12:00:00.001Z' })])).toBe('b');
    expect(to('a', [hop('a', 'b', { active: false })])).toBe('a');
    expect(to('a', [hop('a', 'b', { cascade: false }), hop('b', 'c')])).toBe('b');
  });

  test.each([
    ['to oneself', [hop('a', 'a')], 'a'],
    ['of two', [hop('a', 'b'), hop('b', 'a')], 'a'],
    ['of three', [hop('a', 'b'), hop('b', 'c'), hop('c', 'a')], 'a'],
    ['behind the first', [hop('a', 'b'), hop('b', 'c'), hop('c', 'b')], 'a'],
    ['that another spelling closes', [hop('a', 'b'), hop('b', 'A')], 'a'],
  ] as const)('in a circle %s is left by the last one before it', (_, delegations, last) => {
    const found = route('a', routing(delegations));
    expect(found).toMatchObject({ to: last, note: expect.stringContaining('circle') });
  });

  test('is not followed for ever', () => {
    const long = Array.from({ length: 50 }, (_, at) => hop(`p${at}`, `p${at + 1}`));
    expect(route('p0', routing(long))).toMatchObject({ to: 'p0', note: expect.stringContaining(`${MOST_HOPS}`) });
    expect(to('p0', long.slice(0, MOST_HOPS))).toBe(`p${MOST_HOPS}`);
  });

  test('to someone who must not answer is given back along the way', () => {
    expect(to('a', [hop('a', 'b'), hop('b', 'author')], { isBarred: (one) => one === 'author' })).toBe('b');
  });
});

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const anyDelegation = fc
  .record({
    owner_id: fc.constantFrom(...NAMES),
    delegate_to: fc.constantFrom(...NAMES, 'author', 'gone'),
    cascade: fc.boolean(),
    active: fc.boolean(),
    created_at: fc.constantFrom(AT, '2026-03-17T12:00:00.000Z'),
    conditions: fc.constantFrom<Delegation['conditions'][]>(
      {},
      { risk_above: 50 },
      { risk_above: 70 },
      { task_types: ['other'] },
    ),
  })
  .map(({ owner_id, delegate_to, ...more }) => hop(owner_id, delegate_to, more));

test('whatever people delegate, everyone is answered for by one who may answer, along hops that are there', () => {
  fc.assert(
    fc.property(fc.array(anyDelegation, { maxLength: 15 }), fc.constantFrom(...NAMES), (delegations, owner) => {
      const isBarred = (one: string) => one === 'author' || one === 'gone';
      const { to: last, chain } = route(owner, routing(delegations, { isBarred }));
      expect(chain[0]).toBe(owner);
      expect(chain.at(-1)).toBe(last);
      expect(new Set(chain).size).toBe(chain.length);
      expect(chain.length).toBeLessThanOrEqual(MOST_HOPS + 1);
      expect(isBarred(last)).toBe(false);
      for (const [at, person] of chain.slice(1).entries()) {
        expect(delegations.some((one) => one.owner_id === chain[at] && one.delegate_to === person && one.active)).toBe(
          true,
        );
      }
    }),
    { numRuns: 2_000 },
  );
});

test('whatever people delegate, a quorum is of different people, none of whom made it, or nobody is asked', () => {
  const person = (id: string) => ({
    id,
    name: id,
    kind: 'human' as const,
    roles: ['reviewer'],
    isActive: true,
    mayHaveVoted: true,
  });
  fc.assert(
    fc.property(
      fc.array(anyDelegation, { maxLength: 15 }),
      fc.integer({ min: 1, max: 6 }),
      (delegations, min_approvers) => {
        const assignment = assign({
          petition: PETITION,
          policies: [{ ...policy({ policy_id: 'p', min_approvers }), version: 1, source: 'file' }],
          people: [...NAMES, 'author'].map(person),
          delegations,
          makers: ['author'],
          unaskedBelow: 100,
          allowsUnasked: true,
          at: AT,
        });
        if (assignment.outcome === 'nobody') return;
        expect(assignment.outcome).toBe('ask');
        if (assignment.outcome !== 'ask') return;
        const [need] = assignment.needs;
        expect(new Set(need!.voters).size).toBeGreaterThanOrEqual(min_approvers);
        expect(need!.voters).not.toContain('author');
        expect(assignment.asked.map((one) => one.to).toSorted()).toEqual(need!.voters);
      },
    ),
    { numRuns: 2_000 },
  );
});
