import { expect, test } from 'vitest';
import type { Hold } from '../../src/hold.ts';
import { rightsOf } from '../../src/identity/permissions.ts';
import { forCaller } from '../../src/operations/allowed.ts';
import { operations } from '../../src/operations/index.ts';

const ACTIONS = [
  { label: 'Look', command: 'reeve approval show A.1', method: 'GET', url: '/api/v1/approvals/A.1' },
  { label: 'Take it', command: 'reeve lock release …', method: 'DELETE', url: '/api/v1/locks/resource%3Adb%3Aprod' },
  { label: 'Go on', command: 'reeve resume all', method: 'POST', url: '/api/v1/resume' },
  { label: 'Call off', command: 'reeve task cancel A', method: 'POST', url: '/api/v1/tasks/A/cancel' },
  { label: 'By hand', command: 'switch it on' },
];
const hold = (more: object = {}): Hold => ({
  kind: 'lock',
  subject: 'A',
  clears_at: null,
  because: 'it is held',
  actions: ACTIONS.map((action) => ({ ...action, allowed: true, ...more })),
});
const caller = (...roles: Parameters<typeof rightsOf>[0]) => ({ id: 'ann', roles, ...rightsOf(roles) });
const mayDo = (...roles: Parameters<typeof rightsOf>[0]) =>
  forCaller(hold(), caller(...roles), operations)
    .actions.filter(({ allowed }) => allowed)
    .map(({ label }) => label);

test('what is proposed is for whoever has the right to it', () => {
  expect(mayDo('admin')).toEqual(['Look', 'Take it', 'Go on', 'Call off', 'By hand']);
  expect(mayDo('agent')).toEqual(['Look', 'Take it', 'By hand']);
  expect(mayDo('reviewer')).toEqual(['Look', 'By hand']);
});

test('whoever may not is told what it takes', () => {
  const { actions } = forCaller(hold(), caller('reviewer'), operations);
  expect(actions.find(({ label }) => label === 'Go on')).toMatchObject({ why_not: 'it takes the right "operate"' });
});

test('what the room refuses stays refused, with its own reason', () => {
  const { actions } = forCaller(hold({ allowed: false, why_not: 'rob is asked' }), caller('admin'), operations);
  expect(actions.every(({ allowed, why_not }) => !allowed && why_not === 'rob is asked')).toBe(true);
});
