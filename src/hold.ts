import { z } from 'zod';

const action = z
  .object({
    label: z.string(),
    command: z.string().describe('As one types it'),
    method: z.string().optional(),
    url: z.string().optional(),
    allowed: z.boolean(),
    why_not: z.string().optional(),
  })
  .meta({ id: 'Action' });

/** Why something does not go on. Every door shows it, and every 409, 423 and 503 that has one carries it. */
export const holdSchema = z
  .object({
    kind: z.enum([
      'dependency',
      'approval',
      'lock',
      'capacity',
      'agent_lost',
      'paused',
      'rate_limit',
      'backoff',
      'policy',
      'inconsistent',
    ]),
    subject: z.string().describe('What is held'),
    holder: z.string().optional().describe('Who or what holds it'),
    since: z.string().optional(),
    clears_at: z.string().nullable().describe('When it should clear, if that can be told'),
    clears_by: z.string().optional().describe('How that was estimated'),
    position: z.int().optional().describe('Place in the line; 1 is next'),
    because: z.string().describe('One sentence'),
    rule: z.string().optional().describe('The policy or setting that decided'),
    actions: z.array(action),
  })
  .meta({ id: 'Hold' });

export type Hold = z.output<typeof holdSchema>;
export type Action = z.output<typeof action>;

/** What one room knows about one of its things. */
export interface Explanation {
  /** The name it goes by in every door. */
  readonly subject: string;
  /** One word: free, held, waiting … */
  readonly state: string;
  /** One sentence. */
  readonly says: string;
  readonly holds: readonly Hold[];
  /** What its holders wait for themselves. */
  readonly upstream: readonly string[];
}

/** Undefined: not one of mine. `asker`: who wants to know, where that makes a difference to what can be done. */
export type Explainer = (ref: string, asker: string) => Promise<Explanation | undefined>;

/** 1 h 2 min, 14 min, 8 s: for sentences. */
export function spell(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
