import { type Phase, phaseOf } from '../tasks/station.ts';
import type { TaskContent, TaskId } from '../tasks/task.ts';
import type { Admission, Amendment, Standing, Verdict } from '../tasks/task-sink.ts';
import { carriedOver, editedFields } from './checksums.ts';
import type { Correction, PrdRow, RowMemory } from './prd-db.ts';

export interface MergeInput {
  readonly rows: readonly PrdRow[];
  /** What file and Redis last agreed on, by task. */
  readonly memories: ReadonlyMap<string, RowMemory>;
  /** What Redis has now, by task. */
  readonly standings: ReadonlyMap<TaskId, Standing>;
  /** Tasks that this file had when it was last read. */
  readonly known: ReadonlySet<string>;
  readonly at: string;
}

export interface Merge {
  readonly admissions: readonly Admission[];
  readonly amendments: readonly Amendment[];
  readonly cancelled: readonly TaskId[];
  readonly corrections: readonly Correction[];
  /** Only those that changed. */
  readonly memories: ReadonlyMap<string, RowMemory>;
  readonly forgotten: readonly string[];
}

/** Three ways, field by field: what was agreed on, what the file says, what Redis has. What differs was edited there. */
export function merge({ rows, memories, standings, known, at }: MergeInput): Merge {
  const admissions: Admission[] = [];
  const amendments: Amendment[] = [];
  const corrections: Correction[] = [];
  const agreed = new Map<string, RowMemory>();
  for (const row of rows) {
    const id = row.task.task_id;
    const memory = memories.get(id);
    const standing = standings.get(id);
    const next = memoryOf(row, memory);
    if (!isSame(next, memory)) agreed.set(id, next);
    if (!standing) {
      admissions.push(admissionOf(row, memory));
      continue;
    }
    const settled = settle(row, memory, standing);
    const amendment = amendmentOf(row, memory, next, settled);
    if (amendment) amendments.push(amendment);
    if (settled.outcome === 'correct') {
      corrections.push({ task_id: id, phase: phaseOf(standing.station), agent: standing.agent, at });
    }
  }
  const present = new Set<string>(rows.map(({ task }) => task.task_id));
  const gone = [...new Set([...memories.keys(), ...known])].filter((id) => !present.has(id));
  return {
    admissions,
    amendments,
    corrections,
    memories: agreed,
    // What is gone from the file has been a task, or it would be in neither list.
    cancelled: gone as TaskId[],
    forgotten: gone.filter((id) => memories.has(id)),
  };
}

type Settled = { outcome: 'agree' | 'correct' } | { outcome: 'verdict'; verdict: Verdict };

/**
 * Who is right about where a task stands. An edit in the file is a person's word and wins over any lease, but not over
 * an end that its author cannot have known: work that was completed, or called off, meanwhile stays so.
 */
export function settle(row: FileSide, memory: LastStatus | undefined, standing: Standing): Settled {
  const redis = phaseOf(standing.station);
  const isHeld = isPutAside(row, memory);
  const to = isHeld ? 'held' : row.phase;
  // It may end before the verdict gets there; only that it is done need not be weighed against any other end.
  const unlessEnded = !hasEnded(redis) && row.phase !== 'completed';
  const verdict: Settled = { outcome: 'verdict', verdict: { to, agent: row.agent, unlessEnded } };
  if (hasProblem(row, 'status')) return { outcome: 'agree' };
  if (!memory) {
    if (row.phase === redis) return isHeld ? verdict : { outcome: 'agree' };
    return hasEnded(row.phase) && !hasEnded(redis) ? verdict : { outcome: 'correct' };
  }
  if (row.word === memory.word) return { outcome: memory.phase === redis ? 'agree' : 'correct' };
  if (row.phase === redis) {
    if (row.phase !== 'open' || isHeld === memory.isHeld) return { outcome: 'agree' };
    return { outcome: 'verdict', verdict: { to: isHeld ? 'held' : 'released' } };
  }
  const isNews = redis !== memory.phase && (redis === 'completed' || redis === 'cancelled');
  return isNews ? { outcome: 'correct' } : verdict;
}

type FileSide = Pick<PrdRow, 'word' | 'phase' | 'hold' | 'agent' | 'problems'>;
type LastStatus = Pick<RowMemory, 'word' | 'phase' | 'isHeld'>;

function isPutAside(row: Pick<PrdRow, 'word' | 'hold'>, memory: LastStatus | undefined): boolean {
  if (memory?.word === row.word) return memory.isHeld;
  return row.hold === 'word' || (row.hold === 'edit' && memory !== undefined);
}

const hasEnded = (phase: Phase): boolean => phase === 'completed' || phase === 'failed' || phase === 'cancelled';
const hasProblem = (row: Pick<PrdRow, 'problems'>, field: string) => row.problems.some((one) => one.field === field);
const problemsOf = (row: PrdRow): string => row.problems.map(({ says }) => says).join('; ');

/** A word that is as we left it means what we meant by it: format B has one word for a failure and a hold. */
function admissionOf(row: PrdRow, memory: RowMemory | undefined): Admission {
  const { phase } = memory?.word === row.word ? memory : row;
  const isHeld = isPutAside(row, memory);
  return { task: row.task, phase, isHeld, agent: row.agent, quarantine: problemsOf(row) || undefined };
}

function amendmentOf(
  row: PrdRow,
  memory: RowMemory | undefined,
  next: RowMemory,
  settled: Settled,
): Amendment | undefined {
  const edited = editedFields(memory?.sums ?? '', next.sums);
  const set: Partial<TaskContent> = Object.fromEntries(edited.map((field) => [field, row.task[field]]));
  const amendment: Amendment = {
    task_id: row.task.task_id,
    ...(edited.length > 0 && { set }),
    ...(settled.outcome === 'verdict' && { verdict: settled.verdict }),
    ...(next.problems !== (memory?.problems ?? '') && { quarantine: next.problems || null }),
  };
  return Object.keys(amendment).length > 1 ? amendment : undefined;
}

function memoryOf(row: PrdRow, memory: RowMemory | undefined): RowMemory {
  const { phase } = memory?.word === row.word || hasProblem(row, 'status') ? (memory ?? row) : row;
  const isHeld = isPutAside(row, memory);
  const sums = row.problems.length === 0 ? row.sums : carriedOver(memory?.sums ?? '', row.sums);
  return { word: row.word, agent: row.agent, phase, isHeld, sums, problems: problemsOf(row) };
}

function isSame(next: RowMemory, memory: RowMemory | undefined): boolean {
  return (
    memory !== undefined &&
    next.word === memory.word &&
    next.agent === memory.agent &&
    next.phase === memory.phase &&
    next.isHeld === memory.isHeld &&
    next.problems === memory.problems &&
    next.sums === memory.sums
  );
}
