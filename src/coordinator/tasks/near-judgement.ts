import { rankOf } from './admission.ts';
import { spelling } from './aliases.ts';
import { knots, roundTrip } from './cycles.ts';
import { cycleOf, unknownReason } from './dependencies.ts';
import { type ChosenOrder, chosenOrder, type PriorityOrder, urgencyOf, voteOf } from './priority.ts';
import type { GraphTask, KnownTask, Placing } from './task-graph.ts';
import type { Changed, Judged } from './task-judge.ts';
import type { TaskStore } from './task-store.ts';

/**
 * The same judgement as over all tasks, from what is near a change: what it needs, what waits for it, and as far along
 * the edges as something becomes different. Undefined where that cannot be said without looking at all.
 *
 * What can be wrong with tasks far away? A new task may be what a quarantined one was waiting for: those are looked at.
 * A circle goes through a changed edge, and so lies within what the changed tasks need, at whatever distance; that is
 * only looked at if somebody waits for them. A task is as urgent as the most urgent that waits for it: what becomes more
 * urgent hands that on as far as it makes a difference, what becomes less so lets those look at all that wait for them.
 */
export async function judgeNear(
  store: TaskStore,
  changes: readonly Changed[],
  wanted: PriorityOrder,
): Promise<Judged | undefined> {
  const votes = await rememberedVotes(store);
  const direction = votes && chosenOrder(wanted, votes);
  if (!direction || direction.order !== votes.order) return undefined;
  const near = new Neighbourhood(store, direction.order);
  if (!(await near.enter(changes))) return undefined;
  const counted = await near.recount(votes);
  const next = chosenOrder(wanted, counted);
  if (next.order !== direction.order) return undefined;
  const cycles = await near.findCircles();
  await near.spreadUrgency();
  return { ...near.result(), direction: next, cycles };
}

type Votes = ChosenOrder['votes'];

async function rememberedVotes({ connection, keys }: TaskStore): Promise<(Votes & { order: string }) | undefined> {
  const [order, asc, desc] = await connection.commands.hmget(keys.taskCounts(), 'order', 'votes_asc', 'votes_desc');
  return order && asc && desc ? { order, asc: Number(asc), desc: Number(desc) } : undefined;
}

interface Node {
  readonly id: string;
  readonly before: KnownTask | undefined;
  readonly after: GraphTask;
  /** What it needed, and needs: one list if they are the same. And names of which nothing is known. */
  readonly neededBefore: readonly string[];
  readonly needs: readonly string[];
  readonly missing: readonly string[];
  quarantine: string;
  rank: number;
}

/** More in quarantine than this, and all is looked at instead. */
const MOST_QUARANTINED = 500;
const NEVER = Number.POSITIVE_INFINITY;

class Neighbourhood {
  readonly #store: TaskStore;
  readonly #order: 'asc' | 'desc';
  readonly #nodes = new Map<string, Node>();
  /** Those that change themselves, or whose edges do. */
  readonly #changed = new Set<string>();
  readonly #fresh = new Map<string, string>();
  readonly #waiting = new Map<string, readonly string[]>();

  constructor(store: TaskStore, order: 'asc' | 'desc') {
    this.#store = store;
    this.#order = order;
  }

  /** False if a new id can be taken for one that is there: whom others mean by it is for all to say. */
  async enter(changes: readonly Changed[]): Promise<boolean> {
    for (const { before, after } of changes) if (!before) this.#fresh.set(spelling(after.task_id), after.task_id);
    const isNew = ({ before }: Changed) => !before;
    if (this.#fresh.size < changes.filter(isNew).length || (await this.#areSpelled([...this.#fresh.keys()])))
      return false;
    const touched = await this.#touched(new Set(changes.map(({ after }) => after.task_id)));
    if (!touched) return false;
    await this.#add([...changes, ...touched]);
    for (const { after } of [...changes, ...touched]) this.#changed.add(after.task_id);
    await this.#load(this.#each().flatMap(({ needs, neededBefore }) => [...needs, ...neededBefore]));
    return true;
  }

  /** The votes for a direction, with those of the edges that changed. */
  async recount({ asc, desc }: Votes): Promise<Votes> {
    const votes = { asc, desc };
    const vote = (waiting: number | undefined, needed: number | undefined, by: 1 | -1) => {
      const found = waiting !== undefined && needed !== undefined && voteOf(waiting, needed);
      if (found) votes[found] += by;
    };
    for (const id of this.#changed) {
      const { before, after, neededBefore, needs } = this.#nodes.get(id)!;
      for (const need of neededBefore) vote(before?.priority, this.#nodes.get(need)?.before?.priority, -1);
      for (const need of needs) vote(after.priority, this.#nodes.get(need)?.after.priority, 1);
      if (!before || before.priority === after.priority) continue;
      for (const waiting of await this.#dependentsOf(id)) {
        if (this.#changed.has(waiting)) continue;
        const { priority } = this.#nodes.get(waiting)!.after;
        vote(priority, before.priority, -1);
        vote(priority, after.priority, 1);
      }
    }
    return votes;
  }

  async findCircles(): Promise<string[][]> {
    const suspects = await this.#suspects();
    const circling = suspects.length > 0 ? knots(await this.#closure(suspects)) : [];
    const edges = new Map(this.#each().map(({ id, needs }) => [id, needs]));
    const reasons = new Map<string, string>();
    const cycles = circling.map((knot) => {
      const cycle = roundTrip(knot, edges);
      for (const id of knot) reasons.set(id, cycleOf(id, knot, cycle).reason);
      return cycle;
    });
    for (const id of new Set([...this.#changed, ...suspects, ...reasons.keys()])) {
      const node = this.#nodes.get(id)!;
      const ofGraph = reasons.get(id) ?? (node.missing.length > 0 ? unknownReason(node.missing) : '');
      node.quarantine = node.after.complaint || ofGraph;
    }
    return cycles;
  }

  /** Hands on who became more urgent, or less, from those that wait to what they need. */
  async spreadUrgency(): Promise<void> {
    for (const id of this.#changed) {
      const node = this.#nodes.get(id)!;
      if (node.before) await this.#weigh(node);
    }
    const handedOn = new Map<string, HandedOn>();
    const isOther = ({ id, before, rank, quarantine }: Node) =>
      this.#changed.has(id) || before?.rank !== rank || before.quarantine !== quarantine;
    const queue = new Set(
      this.#each()
        .filter(isOther)
        .map(({ id }) => id),
    );
    for (const id of queue) {
      queue.delete(id);
      const node = this.#nodes.get(id)!;
      const before = handedOn.get(id) ?? handedOnBefore(node);
      const now = hurries(node) ? { rank: node.rank, to: node.needs } : NOTHING;
      handedOn.set(id, now);
      if (before.rank === now.rank && before.to === now.to) continue;
      await this.#load([...before.to, ...now.to]);
      for (const need of new Set([...before.to, ...now.to])) {
        const needed = this.#nodes.get(need)!;
        const [was, is] = [before.to.includes(need) ? before.rank : NEVER, now.to.includes(need) ? now.rank : NEVER];
        const rank = needed.rank;
        if (is < rank) needed.rank = is;
        else if (was === rank && is > was) await this.#weigh(needed);
        if (needed.rank !== rank) queue.add(need);
      }
    }
  }

  result(): Pick<Judged, 'placings' | 'moved' | 'waitingFor'> {
    const placings = new Map<string, Placing>();
    const moved = new Map<string, Partial<Placing>>();
    for (const { id, before, needs, rank, quarantine } of this.#nodes.values()) {
      if (this.#changed.has(id)) placings.set(id, { rank, deps: needs, quarantine });
      else if (before?.rank !== rank || before.quarantine !== quarantine) moved.set(id, { rank, quarantine });
    }
    const waitingFor = async (ids: readonly string[]) =>
      (await Promise.all(ids.map((id) => this.#dependentsOf(id)))).flat();
    return { placings, moved, waitingFor };
  }

  #each(): Node[] {
    return [...this.#nodes.values()];
  }

  /** As urgent as by itself, or as the most urgent that waits for it. */
  async #weigh(node: Node): Promise<void> {
    const waiting = (await this.#dependentsOf(node.id)).map((id) => this.#nodes.get(id)!);
    node.rank = Math.min(this.#own(node.after), ...waiting.filter(hurries).map(({ rank }) => rank));
  }

  #own = ({ priority }: GraphTask): number => rankOf(urgencyOf(priority, this.#order));

  /** Who may be in a circle since, or not any more: whoever has new edges and is waited for; if one of them is in quarantine, all there. */
  async #suspects(): Promise<string[]> {
    const found: string[] = [];
    for (const id of this.#changed) {
      const { needs, neededBefore, before } = this.#nodes.get(id)!;
      if (before?.quarantine) return [...this.#changed, ...(await this.#quarantined())];
      if (needs === neededBefore) continue;
      if (needs.length > 0 && (await this.#dependentsOf(id)).length > 0) found.push(id);
    }
    return found;
  }

  /** Everything that these need, at whatever distance. */
  async #closure(from: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    await this.#load(from);
    const edges = new Map<string, readonly string[]>();
    for (let level = from; level.length > 0; ) {
      await this.#load(level);
      for (const id of level) edges.set(id, this.#nodes.get(id)!.needs);
      level = [...new Set(level.flatMap((id) => edges.get(id)!))].filter((id) => !edges.has(id));
    }
    return edges;
  }

  /** Who waits for it when all is changed. They are loaded. */
  async #dependentsOf(id: string): Promise<readonly string[]> {
    const { connection, keys } = this.#store;
    const kept = this.#waiting.get(id) ?? (await connection.commands.smembers(keys.dependents(id)));
    this.#waiting.set(id, kept);
    const still = kept.filter((one) => !this.#changed.has(one));
    const since = [...this.#changed].filter((one) => this.#nodes.get(one)!.needs.includes(id));
    await this.#load(still);
    return [...still.filter((one) => this.#nodes.has(one)), ...since];
  }

  /** Those in quarantine that a new task is for: what they need is known since. */
  async #touched(changed: ReadonlySet<string>): Promise<Changed[] | undefined> {
    if (this.#fresh.size === 0) return [];
    const quarantined = await this.#quarantined();
    if (quarantined.length > MOST_QUARANTINED) return undefined;
    const others = quarantined.filter((id) => !changed.has(id));
    const known = (await this.#store.graphTasks(others)).filter(({ depends_on }) =>
      depends_on.some((name) => this.#fresh.has(spelling(name))),
    );
    return known.map((before) => ({ before, after: before }));
  }

  #quarantined(): Promise<string[]> {
    const { connection, keys } = this.#store;
    return connection.commands.hkeys(keys.quarantine());
  }

  async #load(ids: readonly string[]): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => !this.#nodes.has(id));
    const known = await this.#store.graphTasks(unknown);
    await this.#add(known.map((before) => ({ before, after: before })));
  }

  async #add(tasks: readonly Changed[]): Promise<void> {
    const written = tasks.flatMap(({ before, after }) => [...(before?.depends_on ?? []), ...after.depends_on]);
    const meant = await this.#resolve([...new Set(written)]);
    for (const { before, after } of tasks) {
      const id = after.task_id;
      const needsOf = (names: readonly string[]) => [...new Set(names.flatMap((name) => meant.get(name) ?? []))];
      const isThere = (need: string) => this.#fresh.get(spelling(need)) !== need;
      const neededBefore = needsOf(before?.depends_on ?? []).filter(isThere);
      const needs = needsOf(after.depends_on);
      const isSame = before !== undefined && needs.join() === neededBefore.join();
      this.#nodes.set(id, {
        id,
        before,
        after,
        neededBefore,
        needs: isSame ? neededBefore : needs,
        missing: after.depends_on.filter((name) => meant.get(name) === undefined),
        quarantine: before?.quarantine ?? '',
        rank: before?.rank ?? this.#own(after),
      });
    }
  }

  /** Which task each name means: an id as it is; else whose other spelling it is, if that is one alone. */
  async #resolve(names: readonly string[]): Promise<Map<string, string>> {
    const { connection, keys } = this.#store;
    const exact = new Set([...(await this.#store.known(names)), ...this.#fresh.values()]);
    const others = names.filter((name) => !exact.has(name));
    const spelled = others.length > 0 ? await connection.commands.hmget(keys.spellings(), ...others.map(spelling)) : [];
    const meant = others.flatMap((name, at): [string, string][] => {
      const id = this.#fresh.get(spelling(name)) ?? spelled[at];
      return id ? [[name, id]] : [];
    });
    return new Map([...names.filter((name) => exact.has(name)).map((id): [string, string] => [id, id]), ...meant]);
  }

  async #areSpelled(spellings: readonly string[]): Promise<boolean> {
    const { connection, keys } = this.#store;
    if (spellings.length === 0) return false;
    return (await connection.commands.hmget(keys.spellings(), ...spellings)).some((id) => id !== null);
  }
}

/** How urgent a task makes what it needs. */
interface HandedOn {
  readonly rank: number;
  readonly to: readonly string[];
}
const NOTHING: HandedOn = { rank: NEVER, to: [] };
/** One that has ended, or must not start, hurries nobody. */
const hurries = ({ after, quarantine }: Node): boolean => after.isOpen && quarantine === '';
const handedOnBefore = ({ before, neededBefore }: Node): HandedOn =>
  before?.isOpen && before.quarantine === '' ? { rank: before.rank, to: neededBefore } : NOTHING;
