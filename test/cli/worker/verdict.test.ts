import { describe, expect, test } from 'vitest';
import type { Ran } from '../../../src/cli/worker/command.ts';
import { readRules } from '../../../src/cli/worker/exit-rules.ts';
import { judge } from '../../../src/cli/worker/verdict.ts';

const usual = readRules({});
const ended = (more: Partial<Ran> = {}, output = ''): Ran => ({
  code: 0,
  signal: undefined,
  stopped: undefined,
  output: { text: output, bytes: output.length, isTruncated: false, tail: Buffer.alloc(0) },
  ...more,
});
const NONE = { outcome: 'none' } as const;
const failing = (ran: Ran, rules = usual) => {
  const verdict = judge(ran, NONE, rules);
  if (verdict.outcome !== 'failed') throw new Error('it is done');
  return verdict;
};

describe('a command that ends with 0', () => {
  test('has done its task; what it said and wrote is the result', () => {
    const reply = { notes: 'as asked', files_modified: ['a.ts'], cost_usd: 0.2 };
    expect(judge(ended({}, 'hello\n'), { outcome: 'read', reply }, usual)).toEqual({
      outcome: 'done',
      result: {
        notes: 'as asked',
        files_modified: ['a.ts'],
        cost_usd: 0.2,
        errors: [],
        exit_code: 0,
        output: 'hello\n',
        output_bytes: 6,
        output_truncated: false,
      },
    });
  });

  test('has done it also if its result cannot be read, which is then said', () => {
    const verdict = judge(ended(), { outcome: 'unreadable', problem: 'it is no JSON' }, usual);
    expect(verdict).toMatchObject({
      outcome: 'done',
      result: { errors: ['its result was not read: it is no JSON'] },
    });
  });

  test('has not done it if it ended so because its time was over', () => {
    expect(judge(ended({ stopped: 'timeout' }), NONE, usual, 5_000)).toMatchObject({
      outcome: 'failed',
      class: 'timeout',
      error: 'the command was ended after 5 s: it took too long',
    });
  });
});

describe('the class of a failure', () => {
  test.each([
    [1, 'task'],
    [2, 'task'],
    [69, 'infra'],
    [75, 'infra'],
    [77, 'auth'],
    [79, 'quota'],
    [126, 'infra'],
    [127, 'infra'],
  ])('exit code %i is %s', (code, kind) => {
    expect(failing(ended({ code })).class).toBe(kind);
  });

  test('a crash is the task’s: one that kills its agents must run out of attempts', () => {
    expect(failing(ended({ code: undefined, signal: 'SIGSEGV' }))).toMatchObject({
      class: 'task',
      error: 'the command was killed by SIGSEGV',
      result: { exit_code: 139 },
    });
  });

  test('further codes can be given a meaning', () => {
    const rules = readRules({ exitCodes: '80=quota, 75=task' });
    expect(failing(ended({ code: 80 }), rules).class).toBe('quota');
    expect(failing(ended({ code: 75 }), rules).class).toBe('task');
    expect(failing(ended({ code: 77 }), rules).class).toBe('auth');
    expect(() => readRules({ exitCodes: '80=whatever' })).toThrow('80=whatever is not of the form');
    expect(() => readRules({ exitCodes: '0=task' })).toThrow('not of the form');
  });

  test('the end of the output may say that a limit is reached, and until when', () => {
    const verdict = failing(ended({ code: 1 }, 'working\nusage limit reached|1790000000\n'));
    expect(verdict).toMatchObject({ class: 'quota', resetsAt: 1_790_000_000 });
    expect(failing(ended({ code: 1 }, 'Please run /login')).class).toBe('auth');
  });

  test('what was written long before the end says nothing about it', () => {
    const output = `quota exceeded\n${'more work\n'.repeat(400)}`;
    expect(failing(ended({ code: 1 }, output)).class).toBe('task');
  });

  test('what to look for can be given', () => {
    const rules = readRules({ quotaPattern: 'come back later', authPattern: 'who are you' });
    expect(failing(ended({ code: 1 }, 'Come back later.'), rules).class).toBe('quota');
    expect(failing(ended({ code: 1 }, 'Who are you?'), rules).class).toBe('auth');
    expect(() => readRules({ quotaPattern: '(' })).toThrow('--quota-pattern: not a regular expression');
  });

  test('what the command says about itself goes before what is guessed', () => {
    const reply = { class: 'quota', error: 'limit', resets_at: '2026-11-18T12:00:00Z' } as const;
    expect(judge(ended({ code: 75 }), { outcome: 'read', reply }, usual)).toMatchObject({
      class: 'quota',
      error: 'limit',
      resetsAt: Date.UTC(2026, 10, 18, 12) / 1000,
    });
  });
});
