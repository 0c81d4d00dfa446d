import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blastRadius } from '../../src/approvals/blast.ts';
import { criticalityOf, USUAL_CRITICALITY } from '../../src/approvals/criticality.ts';
import { allowsUnasked, matching, type Petition } from '../../src/approvals/policy.ts';
import { magnitudeOf } from '../../src/approvals/preview.ts';
import { assessRisk, FACTOR_NAMES, type Findings } from '../../src/approvals/risk.ts';
import { aTask } from '../coordinator/tasks/room.ts';
import { policy, usualTerms } from './room.ts';

const { thresholds } = usualTerms();
const findings = (values: readonly number[]): Findings =>
  Object.fromEntries(FACTOR_NAMES.map((name, at) => [name, { value: values[at]!, because: '' }])) as Findings;
const scoreOf = (values: readonly number[]) => assessRisk(findings(values), thresholds).exact;

describe('the risk', () => {
  test('is the weighted sum, on a scale of 100', () => {
    expect(scoreOf([0, 0, 0, 0])).toBe(0);
    expect(scoreOf([100, 100, 100, 100])).toBe(100);
    expect(scoreOf([95, 90, 80, 60])).toBe(87);
    expect([
      scoreOf([100, 0, 0, 0]),
      scoreOf([0, 100, 0, 0]),
      scoreOf([0, 0, 100, 0]),
      scoreOf([0, 0, 0, 100]),
    ]).toEqual([40, 30, 20, 10]);
  });

  const value = fc.integer({ min: 0, max: 100 });
  test('changes with each factor alone, and in its direction', () => {
    fc.assert(
      fc.property(fc.tuple(value, value, value, value), fc.nat(3), value, (values, at, other) => {
        const changed = values.with(at, other);
        expect(Math.sign(scoreOf(changed) - scoreOf(values))).toBe(Math.sign(other - values[at]!));
      }),
    );
  });

  test('takes what is no number for the worst, and what is out of range for its end', () => {
    expect(scoreOf([Number.NaN, 0, 0, 0])).toBe(40);
    expect(scoreOf([100.4, -5, Number.POSITIVE_INFINITY, 0])).toBe(60);
  });

  test('is shown below a whole threshold exactly if it is below it', () => {
    fc.assert(
      fc.property(fc.tuple(value, value, value, value), value, (values, threshold) => {
        const { score, exact } = assessRisk(findings(values), thresholds);
        expect(score < threshold).toBe(exact < threshold);
      }),
    );
  });
});

describe('each factor follows its input', () => {
  test('criticality the most critical resource', () => {
    const of = (...resources: { type: string; id: string }[]) => criticalityOf(resources, USUAL_CRITICALITY).value;
    expect(of()).toBeLessThan(of({ type: 'service', id: 'api' }));
    expect(of({ type: 'database', id: 'dev' })).toBeLessThan(of({ type: 'database', id: 'prod-1' }));
    expect(of({ type: 'file', id: 'a' }, { type: 'secret', id: 'key' })).toBe(90);
  });

  test('magnitude the number of things, a folder more than a file, and the unknown most', () => {
    const of = (more: object) => magnitudeOf(aTask({ task_id: 'A', ...more }), false).value;
    const sizes = [['a'], ['a', 'b'], ['a/'], ['a/', 'b/']].map((files_to_modify) => of({ files_to_modify }));
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    expect(new Set(sizes).size).toBe(4);
    expect([of({}), of({ files_to_modify: ['a'], parameters: { sql: 'drop' } })]).toEqual([100, 100]);
    expect(magnitudeOf(aTask({ task_id: 'A' }), true).value).toBeLessThan(50);
  });

  test('what an author says about the risk changes nothing', () => {
    const claims = { blast_radius: 0, risk: 0 };
    const of = (parameters: Record<string, unknown>) => magnitudeOf(aTask({ task_id: 'A', parameters }), false).value;
    expect(of(claims)).toBe(100);
  });

  test('blast radius the tasks behind it and what uses its resources', () => {
    const table = [{ pattern: 'database:*', criticality: 1, used_by: ['web', 'jobs'] }];
    const of = (tasks: number, type = 'file') => blastRadius({ tasks, resources: [{ type, id: 'x' }] }, table).value;
    expect([of(0), of(1), of(3), of(63), of(10_000)]).toEqual([0, 10, 20, 60, 60]);
    expect(of(0, 'database')).toBe(10);
  });
});

describe('a policy', () => {
  const petition = (more: Partial<Petition> = {}): Petition => ({
    type: 'deploy',
    resources: [{ type: 'database', id: 'prod-1' }],
    risk: 40,
    authorRoles: ['author'],
    ...more,
  });
  const isAbout = (given: object, more: Partial<Petition> = {}) =>
    matching([policy({ policy_id: 'p', ...given })], petition(more)).length === 1;

  test.each([
    [{}, true],
    [{ enabled: false }, false],
    [{ task_types: ['dep*'] }, true],
    [{ task_types: ['other'] }, false],
    [{ resource_patterns: ['database:prod-*'] }, true],
    [{ resource_patterns: ['prod-*'] }, true],
    [{ resource_patterns: ['service:prod-*'] }, false],
    [{ risk_threshold: 40 }, true],
    [{ risk_threshold: 40.01 }, false],
  ])('is about a task by type, resource and risk: %j', (given, expected) => {
    expect(isAbout(given)).toBe(expected);
  });

  const passes = (auto_approve_if: object | undefined, more: Partial<Petition> = {}) =>
    allowsUnasked(policy({ policy_id: 'p', ...(auto_approve_if && { auto_approve_if }) }), petition(more));
  test.each([
    [undefined, false],
    [{}, false],
    [{ risk_below: 40 }, false],
    [{ risk_below: 40.01 }, true],
    [{ author_has_role: ['author', 'x'] }, true],
    [{ risk_below: 50, author_has_role: ['x'] }, false],
    [{ risk_below: 50, resources_in_scope: ['database:*'] }, true],
    [{ resources_in_scope: ['file:*'] }, false],
  ])('lets it pass if all that it names holds, strictly: %j', (given, expected) => {
    expect(passes(given)).toBe(expected);
  });

  test('has nothing in scope where nothing is named', () => {
    expect(passes({ resources_in_scope: ['**'] }, { resources: [] })).toBe(false);
  });
});
