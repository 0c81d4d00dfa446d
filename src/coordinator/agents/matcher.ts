/** As much of a task as decides who should do it. */
export interface WantedSkills {
  readonly category: string;
  readonly tech_stack: readonly string[];
  /** The type it asks for by name; that decides. */
  readonly agent_type?: string | undefined;
  readonly requires: readonly string[];
}

export interface Candidate {
  readonly agent_type: string;
  readonly capabilities: readonly string[];
}

/** Takes any task that asks for no one else: what nothing speaks for, and agents that named no type. */
export const GENERAL = 'general-purpose';

interface TypeRule {
  readonly type: string;
  /** Words of the category that point to this type. */
  readonly categories: readonly string[];
  readonly techs: readonly string[];
}

/** Types by what speaks for them; the first that fits is suggested. Whole words decide: "build" has no "ui" in it. */
export const TYPE_RULES: readonly TypeRule[] = [
  { type: 'shadcn-design-engineer', categories: ['ui', 'ux', 'design'], techs: ['shadcn'] },
  {
    type: 'fullstack-nodejs-nextjs-engineer',
    categories: ['backend', 'api', 'fullstack', 'frontend', 'auth', 'database'],
    techs: ['nextjs', 'prisma'],
  },
];

/** The type of agent a task is for: the one it names, else the one its category or its technologies speak for. */
export function suggestType(task: WantedSkills, rules: readonly TypeRule[] = TYPE_RULES): string {
  if (task.agent_type) return task.agent_type;
  const category = new Set([...words(task.category), joined(task.category)]);
  const techs = new Set(task.tech_stack.flatMap((tech) => [...words(tech), joined(tech)]));
  const speaksFor = ({ categories, techs: known }: TypeRule) =>
    categories.some((word) => category.has(word)) || known.some((word) => techs.has(word));
  return rules.find(speaksFor)?.type ?? GENERAL;
}

export type Fit =
  | { readonly fits: true; readonly score: number }
  | { readonly fits: false; readonly lacks: 'type' | 'capabilities'; readonly missing: readonly string[] };

/**
 * Whether an agent may take a task, and how well it suits it: 2 for its own type, 1 for each technology it knows.
 * A general agent takes what asks for no type by name; a specialist also takes general work, but after its own.
 */
export function fit(agent: Candidate, task: WantedSkills, rules?: readonly TypeRule[]): Fit {
  const type = suggestType(task, rules);
  if (task.agent_type && !isSame(agent.agent_type, type)) return { fits: false, lacks: 'type', missing: [type] };
  const isAllowed = isSame(agent.agent_type, type) || type === GENERAL || isSame(agent.agent_type, GENERAL);
  if (!isAllowed) return { fits: false, lacks: 'type', missing: [type] };
  const has = new Set(agent.capabilities.map(joined));
  const missing = task.requires.filter((capability) => !has.has(joined(capability)));
  if (missing.length > 0) return { fits: false, lacks: 'capabilities', missing };
  const known = task.tech_stack.filter((tech) => has.has(joined(tech))).length;
  return { fits: true, score: (isSame(agent.agent_type, type) ? 2 : 0) + known };
}

/** The ready sets an agent of this type looks at, in order: its own work first. A general agent looks at all. */
export function typesFor(agentType: string, known: readonly string[]): string[] {
  if (isSame(agentType, GENERAL)) return [GENERAL, ...known.filter((type) => type !== GENERAL)];
  return [agentType, GENERAL];
}

/** Ready work that no living agent can take, by what is lacking: a matter for people, not for silence. */
export function unservable<T extends WantedSkills>(ready: readonly T[], agents: readonly Candidate[]): T[] {
  return ready.filter((task) => !agents.some((agent) => fit(agent, task).fits));
}

const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}+#]+/gu) ?? [];
/** "Full Stack" is "fullstack", "Next.js" is "nextjs". */
const joined = (text: string): string => words(text).join('');
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
