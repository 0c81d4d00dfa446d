import { z } from 'zod';

const text = z.string().optional();

/** One audit row: who did what to what, when, from where and why. */
export const entrySchema = z.object({
  at: z.string().describe('When, to the microsecond'),
  user: z.string().describe('Who: a user, an agent, or system'),
  session: text.describe('The browser session'),
  action: z.string().describe('What was done'),
  subject: z.string().describe('To what: task:ID, approval:ID, user:ID, token:ID'),
  task: text.describe('The task it is about'),
  agent: text.describe('The agent whose lease it is about'),
  from: z.string().describe('State before'),
  to: z.string().describe('State after'),
  door: text.describe('http or mcp; none if the daemon acted by itself'),
  ip: text,
  user_agent: text,
  service: z.string().describe('Which daemon'),
  operation: text.describe('What was asked for'),
  reason: text,
  ticket: text,
  config_hash: text,
  policy_version: text,
  fencing_token: text,
  cmd_id: text.describe('The same for all rows of one call'),
  detail: z.unknown().optional(),
});
export type AuditEntry = z.output<typeof entrySchema>;
