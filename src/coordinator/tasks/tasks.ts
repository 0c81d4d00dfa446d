import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { parseLock } from '../locks/lock.ts';
import type { Locks } from '../locks/locks.ts';
import { metadataOf, recordOf } from './admission.ts';
import { spelling } from './aliases.ts';
import { configHash } from './config-hash.ts';
import type { Gate, Passage } from './gate.ts';
import { Ledger } from './ledger.ts';
import { Outbox } from './outbox.ts';
import { Overdue } from './overdue.ts';
import { Pauses } from './pauses.ts';
import type { PriorityOrder } from './priority.ts';
import { restOf } from './result.ts';
import { admit, amend, cancel, judge, number, reopen } from './scripts.ts';
import type { Task, TaskContent, TaskId } from './task.ts';
import { TaskEdges } from './task-edges.ts';
import type { GraphTask, KnownTask, Placing } from './task-graph.ts';
import { type Changed, inOrder, type Judged, TaskJudge } from './task-judge.ts';
import { TaskPages } from './task-pages.ts';
import type { Admission, AdmissionHint, Amendment, Outcome, Standing, TaskSink, Verdict } from './task-sink.ts';
import { TaskStore, type TaskStoreOptions } from './task-store.ts';
import { TaskViews } from './task-view.ts';
import { RAW, Work, type WorkLimits } from './work.ts';

export interface TaskLimits extends WorkLimits {
  readonly window: number;
  /** The public list holds only tasks that can run side by side. */
  readonly isExclusive?: boolean;
  readonly priorityOrder: PriorityOrder;
  /** How long one who works by hand may stay silent. */
  readonly rawLeaseMs: number;
  /** How many usual steps may be left to be written up; none, if not said. */
  readonly unwritten?: number;
}

/** Where nobody need be asked for anything. */
const OPEN_GATE: Gate = { judge: async () => new Map(), isWritten: async () => false, ask: async () => {} };

export interface TasksOptions extends Omit<TaskStoreOptions, 'window'> {
  readonly locks: Locks;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: () => TaskLimits;
  /** How long a task may run that does not say so itself, in seconds; 0 is no limit. Asked each time: it may be changed live. */
  readonly defaultTimeout: () => Promise<number>;
  /** From how many tasks on a change is judged by what is near it. */
  readonly nearFrom?: number;
}

const CHUNK = 200;

/** The task room: what is to be done, by whom, and what became of it. */
export class Tasks implements TaskSink {
  readonly store: TaskStore;
  readonly ledger: Ledger;
  readonly work: Work;
  readonly views: TaskViews;
  readonly pages: TaskPages;
  readonly edges: TaskEdges;
  readonly outbox: Outbox;
  readonly pauses: Pauses;
  readonly overdue: Overdue;
  readonly #options: TasksOptions;
  readonly #judge: TaskJudge;
  #gate = OPEN_GATE;

  constructor(options: TasksOptions) {
    const { connection, limits, locks } = options;
    this.#options = options;
    this.store = new TaskStore({
      ...options,
      window: () => limits().window,
      isExclusive: () => limits().isExclusive ?? false,
      unwritten: () => limits().unwritten ?? 0,
    });
    this.ledger = new Ledger({ ...options, store: this.store });
    this.store.keepCurrent(() => this.ledger.current());
    this.work = new Work({ store: this.store, locks, limits, ledger: this.ledger });
    this.views = new TaskViews(this.store);
    this.pages = new TaskPages(this.store, this.views);
    this.edges = new TaskEdges(this.store);
    this.outbox = new Outbox({ connection, keys: this.store.keys });
    this.pauses = new Pauses(this.store);
    const wanted = () => limits().priorityOrder;
    this.#judge = new TaskJudge({ ...options, store: this.store, wanted });
    this.overdue = new Overdue({ ...options, store: this.store, work: this.work, pauses: this.pauses });
  }

  /** From now on tasks pass this gate. It reads tasks itself, and so is made after them. */
  guard(gate: Gate): void {
    this.#gate = gate;
  }

  async admit(admissions: readonly Admission[], hint?: AdmissionHint): Promise<void> {
    if (hint) await this.#judge.heed(hint.priorityOrder);
    const known = await this.store.known(admissions.map(({ task }) => task.task_id));
    const fresh = admissions.filter(({ task }) => !known.has(task.task_id));
    if (fresh.length === 0) return;
    const judged = await this.#judge.judge(fresh.map((one) => ({ after: graphTask(one) })));
    const born = Math.floor(this.#options.clock.now() / 1000);
    const last = await this.store.scripts.run(number, {}, { count: fresh.length });
    const defaultTimeout = await this.#options.defaultTimeout();
    const open = fresh.filter(({ phase, isDraft }) => phase === 'open' && !isDraft).map(({ task }) => task);
    const passages = await this.#gate.judge(open, judged.waitingFor);
    const row = (one: Admission, at: number) => ({
      ...this.#row(one, judged, { born, defaultTimeout, passage: passages.get(one.task.task_id) }),
      seq: last - fresh.length + 1 + at,
    });
    const rows = new Map(fresh.map((one, at) => [one.task.task_id as string, row(one, at)]));
    const batch = inOrder(judged.placings).filter((id) => rows.has(id));
    for (let at = 0; at < batch.length; at += CHUNK) {
      const tasks = batch.slice(at, at + CHUNK).map((id) => rows.get(id));
      await this.store.scripts.run(admit, {}, { ...this.store.common(), ...this.#rawLease(), tasks });
    }
    await this.#carryOut(
      judged,
      [...judged.placings].filter(([id]) => !rows.has(id)),
    );
    await this.#gate.ask(stopped(passages), { drafts: true });
  }

  async amend(amendments: readonly Amendment[]): Promise<void> {
    const edited = amendments.filter(({ set, quarantine }) => set || quarantine !== undefined);
    if (edited.length > 0) await this.#edit(edited);
    for (const { task_id, verdict } of amendments) if (verdict) await this.judge(task_id, verdict, 'the task file');
  }

  async cancel(ids: readonly TaskId[], why: string, by = 'the task file'): Promise<void> {
    for (const id of ids) await this.cancelOne(id, why, by);
  }

  async cancelOne(task: string, reason: string, by: string): Promise<'cancelled' | 'ended' | 'unknown'> {
    const [before] = await this.store.graphTasks([task]);
    const [word] = await this.store.scripts.run(cancel, {}, { ...this.store.common(), task, reason, by });
    // What it needs is not more urgent for its sake any more.
    if (word === 'CANCELLED' && before && before.depends_on.length > 0) {
      await this.#carryOut(await this.#judge.judge([{ before, after: { ...before, isOpen: false } }]), []);
    }
    return word?.toLowerCase() as 'cancelled' | 'ended' | 'unknown';
  }

  /** Back to the queue as a new try; one that runs stays as it is. */
  async reopen(task: string, reason: string, by: string): Promise<'open' | 'running' | 'unknown'> {
    const found = await this.views.tasks([task]);
    const passages = await this.#gate.judge([...found.values()], () => []);
    // What a person wrote is ruled upon anew; a task of the file goes by itself, if nothing speaks against it.
    const gate = Number(passages.get(task)?.passes === false || (await this.#gate.isWritten(task)));
    const [word] = await this.store.scripts.run(reopen, {}, { ...this.store.common(), task, reason, by, gate });
    if (gate && word === 'OPEN') await this.#gate.ask([task], { drafts: true });
    return word?.toLowerCase() as 'open' | 'running' | 'unknown';
  }

  /** A person's word. */
  async judge(task: string, { to, agent, unlessEnded = false }: Verdict, by: string, reason = ''): Promise<void> {
    if (to === 'held' || to === 'released') {
      const changes = [{ id: task, aside: to === 'held' ? '1' : '' }];
      await this.store.scripts.run(amend, {}, { ...this.store.common(), changes });
      return;
    }
    if (to === 'cancelled') return void (await this.cancelOne(task, reason || 'called off', by));
    const who = to === 'running' ? `${RAW}${agent ?? task}` : (agent ?? '');
    const args = {
      ...this.store.common(who),
      ...this.#rawLease(),
      task,
      to,
      by,
      reason,
      rest: restOf({ notes: reason }),
      unless_ended: Number(unlessEnded),
    };
    const [word] = await this.store.scripts.run(judge, {}, args);
    if (to === 'open' && word === 'SAME') await this.reopen(task, reason || 'opened again', by);
    if (to === 'running' && word === 'SAME') await this.trust(task);
  }

  /** One who works by hand cannot send heartbeats. Somebody spoke of it, so it lives, and may be silent for as long again. */
  async trust(task: string): Promise<void> {
    const { locks, limits } = this.#options;
    const [[agent, lockId] = []] = await this.store.records([task], ['agent', 'lock_id']);
    if (!lockId || !agent?.startsWith(RAW)) return;
    await locks.heartbeat({ locks: [parseLock(`task:${this.store.adeId(task)}`)], agent, lockId }, limits().rawLeaseMs);
  }

  standings(ids: readonly TaskId[]): Promise<ReadonlyMap<TaskId, Standing>> {
    return this.views.standings(ids);
  }

  size(): Promise<number> {
    return this.store.size();
  }

  outcomes(limit: number): Promise<readonly Outcome[]> {
    return this.outbox.read(limit);
  }

  settle(ids: readonly string[]): Promise<void> {
    return this.outbox.settle(ids);
  }

  #row(
    { task, phase, agent, isHeld, isDraft = false, author = task.origin, quarantine = '' }: Admission,
    { placings }: Judged,
    { born, defaultTimeout, passage }: RowTerms,
  ) {
    const { clock } = this.#options;
    return {
      id: task.task_id,
      spelling: spelling(task.task_id),
      ...recordOf(task, { defaultTimeout, project: this.store.project }),
      ...placings.get(task.task_id),
      complaint: quarantine,
      born,
      origin: task.origin,
      aside: isHeld ? '1' : '',
      author,
      metadata: metadataOf(task),
      risk: passage?.risk ?? [],
      draft: Number(isDraft || passage?.passes === false),
      created_at: task.created_at ?? new Date(clock.now()).toISOString(),
      phase,
      agent: `${RAW}${agentName(agent) ?? task.task_id}`,
    };
  }

  async #edit(edited: readonly Amendment[]): Promise<void> {
    const defaultTimeout = await this.#options.defaultTimeout();
    const ids = edited.map(({ task_id }) => task_id);
    const [tasks, known] = [await this.views.tasks(ids), await this.store.graphTasks(ids)];
    const befores = new Map<string, KnownTask>(known.map((one) => [one.task_id, one]));
    const contents = new Map<string, object>();
    const nexts = new Map<string, Task>();
    const changed: Changed[] = [];
    for (const { task_id, set, quarantine, editor = 'prd' } of edited) {
      const task = tasks.get(task_id);
      const before = befores.get(task_id);
      if (!task || !before) continue;
      const next: Task = { ...task, ...(set as Partial<TaskContent>) };
      const complaint = quarantine === undefined ? before.complaint : (quarantine ?? '');
      const { priority, depends_on } = next;
      changed.push({ before, after: { task_id, isOpen: before.isOpen, priority, depends_on, complaint } });
      const content = set && {
        ...recordOf(next, { defaultTimeout, project: this.store.project }),
        config_hash: configHash(next),
        editor,
      };
      contents.set(task_id, { complaint, ...content });
      if (set) nexts.set(task_id, next);
    }
    const judged = await this.#judge.judge(changed);
    const passages = await this.#gate.judge([...nexts.values()], judged.waitingFor);
    const written = edited.flatMap(({ task_id, set, editor }) => (set && editor ? [task_id] : []));
    for (const id of [...stopped(passages), ...written]) contents.set(id, { ...contents.get(id), gate: 1 });
    await this.#carryOut(judged, judged.placings, contents);
    const isOfFile = (id: string) => edited.some(({ task_id, editor }) => task_id === id && !editor);
    const [ofFile, others] = [[...nexts.keys()].filter(isOfFile), [...nexts.keys()].filter((id) => !isOfFile(id))];
    await this.#gate.ask(ofFile, { drafts: true });
    await this.#gate.ask(others, { drafts: false });
  }

  /** Puts tasks that are known where they belong since, with what was edited in them. */
  async #carryOut(
    judged: Judged,
    placings: Iterable<readonly [string, Placing]>,
    contents = new Map<string, object>(),
  ) {
    const changes = [...placings, ...judged.moved].map(([id, placing]) => ({ id, ...contents.get(id), ...placing }));
    for (let at = 0; at < changes.length; at += CHUNK) {
      const part = changes.slice(at, at + CHUNK);
      await this.store.scripts.run(amend, {}, { ...this.store.common(), changes: part });
    }
    await this.#judge.remember(judged);
  }

  #rawLease() {
    const { rawLeaseMs } = this.#options.limits();
    return { lease_us: rawLeaseMs * 1000, lease_class: 'process', hold_us: 0, purpose: 'task' };
  }
}

interface RowTerms {
  readonly born: number;
  readonly defaultTimeout: number;
  readonly passage: Passage | undefined;
}

const stopped = (passages: ReadonlyMap<string, Passage>): string[] =>
  [...passages].filter(([, { passes }]) => !passes).map(([id]) => id);

const graphTask = ({ task, phase, quarantine }: Admission): GraphTask => ({
  task_id: task.task_id,
  priority: task.priority,
  depends_on: task.depends_on,
  isOpen: phase === 'open' || phase === 'running',
  complaint: quarantine ?? '',
});

/** A name from a file may be anything; a lease needs one that can stand in a key. */
const agentName = (text: string | undefined): string | undefined =>
  text?.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 100) || undefined;
