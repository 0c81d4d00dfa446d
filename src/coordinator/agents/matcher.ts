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

/** The type of work that nothing speaks for, and of agents that named no type. */
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

/** Ready work is kept in lanes: one for each suggested type, and one for each type that tasks ask for by name. */
export const laneOf = (task: WantedSkills, rules?: readonly TypeRule[]): string =>
  task.agent_type ? `only.${task.agent_type.toLowerCase()}` : suggestType(task, rules);

/**
 * The lanes an agent may take from, its own first. A specialist, one whose type the rules suggest, does its own work and
 * what nothing speaks for; any other agent is a generalist, whatever it calls itself, and does all but what asks for
 * someone else by name.
 */
export function lanesFor(agentType: string, rules: readonly TypeRule[] = TYPE_RULES): string[] {
  const named = `only.${agentType.toLowerCase()}`;
  const own = rules.find(({ type }) => isSame(type, agentType));
  return own ? [named, own.type, GENERAL] : [named, GENERAL, ...rules.map(({ type }) => type)];
}

export type Match =
  | { readonly fits: true; readonly score: number }
  | { readonly fits: false; readonly lacks: 'type' | 'capabilities'; readonly missing: readonly string[] };

/** Whether an agent may take a task, and how well it suits: 2 for its own lane, 1 for each technology it knows. */
export function match(agent: Candidate, task: WantedSkills, rules?: readonly TypeRule[]): Match {
  const lane = laneOf(task, rules);
  const lanes = lanesFor(agent.agent_type, rules);
  if (!lanes.includes(lane)) return { fits: false, lacks: 'type', missing: [suggestType(task, rules)] };
  const has = new Set(agent.capabilities.map(joined));
  const missing = task.requires.filter((capability) => !has.has(joined(capability)));
  if (missing.length > 0) return { fits: false, lacks: 'capabilities', missing };
  const known = task.tech_stack.filter((tech) => has.has(joined(tech))).length;
  return { fits: true, score: (isSame(agent.agent_type, suggestType(task, rules)) ? 2 : 0) + known };
}

const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}+#]+/gu) ?? [];
/** "Full Stack" is "fullstack", "Next.js" is "nextjs". */
const joined = (text: string): string => words(text).join('');
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
