import { describe, expect, test } from 'vitest';
import { laneOf, lanesFor, match, suggestType, type WantedSkills } from '../../../src/coordinator/agents/matcher.ts';

const wanting = (task: Partial<WantedSkills> = {}): WantedSkills => ({
  category: '',
  tech_stack: [],
  requires: [],
  ...task,
});
const SHADCN = 'shadcn-design-engineer';
const FULLSTACK = 'fullstack-nodejs-nextjs-engineer';
const GENERAL = 'general-purpose';

describe('the suggested type', () => {
  test.each([
    ['UI', [], SHADCN],
    ['Design', [], SHADCN],
    ['Documentation', ['shadcn/ui'], SHADCN],
    ['backend', [], FULLSTACK],
    ['Backend API', [], FULLSTACK],
    ['Full Stack', [], FULLSTACK],
    ['Setup', ['Next.js'], FULLSTACK],
    ['Setup', ['Prisma ORM'], FULLSTACK],
    ['Setup', [], GENERAL],
    ['', [], GENERAL],
  ])('for category "%s" and technologies %j it is %s', (category, tech_stack, type) => {
    expect(suggestType(wanting({ category, tech_stack }))).toBe(type);
  });

  test('words decide, not letters: building and capital are neither UI nor API', () => {
    expect(suggestType(wanting({ category: 'Building' }))).toBe(GENERAL);
    expect(suggestType(wanting({ category: 'Capital' }))).toBe(GENERAL);
  });

  test('a type that the task names decides', () => {
    expect(suggestType(wanting({ category: 'UI', agent_type: 'dba' }))).toBe('dba');
  });
});

describe('who may take what', () => {
  const ui = wanting({ category: 'UI' });

  test('specialists do their own work and what nothing speaks for', () => {
    expect(match({ agent_type: SHADCN, capabilities: [] }, ui)).toEqual({ fits: true, score: 2 });
    expect(match({ agent_type: SHADCN, capabilities: [] }, wanting()).fits).toBe(true);
    expect(match({ agent_type: FULLSTACK, capabilities: [] }, ui)).toEqual({
      fits: false,
      lacks: 'type',
      missing: [SHADCN],
    });
  });

  test('generalists, also those of a type that nobody suggests, do all but what asks for another by name', () => {
    for (const agent_type of [GENERAL, 'claude']) {
      expect(match({ agent_type, capabilities: [] }, ui).fits).toBe(true);
      expect(match({ agent_type, capabilities: [] }, wanting({ agent_type: 'dba' })).fits).toBe(false);
    }
    expect(match({ agent_type: 'DBA', capabilities: [] }, wanting({ agent_type: 'dba' })).fits).toBe(true);
  });

  test('every required capability must be there, however it is spelt', () => {
    const task = wanting({ requires: ['Next.js', 'docker'] });
    expect(match({ agent_type: GENERAL, capabilities: ['nextjs'] }, task)).toEqual({
      fits: false,
      lacks: 'capabilities',
      missing: ['docker'],
    });
    expect(match({ agent_type: GENERAL, capabilities: ['NextJS', 'Docker'] }, task).fits).toBe(true);
  });

  test('known technologies make a better match', () => {
    const task = wanting({ tech_stack: ['TypeScript', 'Redis'] });
    expect(match({ agent_type: GENERAL, capabilities: ['redis', 'typescript'] }, task)).toEqual({
      fits: true,
      score: 4,
    });
  });

  test('an agent takes from a lane exactly if it may take what is in it', () => {
    const tasks = [
      ui,
      wanting(),
      wanting({ agent_type: 'dba' }),
      wanting({ agent_type: GENERAL }),
      wanting({ category: 'API' }),
    ];
    for (const agent_type of [SHADCN, FULLSTACK, GENERAL, 'dba', 'claude']) {
      for (const task of tasks) {
        expect(lanesFor(agent_type).includes(laneOf(task))).toBe(match({ agent_type, capabilities: [] }, task).fits);
      }
    }
  });
});
