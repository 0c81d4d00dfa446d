/** A lock that somebody waits for: who has it, and who stands in line, first come first. */
export interface Contest {
  readonly lock: string;
  readonly holders: readonly Holding[];
  readonly waiters: readonly Waiting[];
}

type Mode = 'shared' | 'exclusive';

export interface Holding {
  readonly agent: string;
  readonly lockId: string;
  readonly token: string;
  readonly mode: Mode;
}

export interface Waiting {
  readonly agent: string;
  readonly lockId: string;
  readonly mode: Mode;
  /** When it first asked, in microseconds: a victim that asks again keeps it, or it would be the youngest for ever. */
  readonly since: number;
  readonly priority: number;
}

/** One agent waits for another: for a holder (hard), or for someone ahead in the line (soft). */
export interface Edge {
  readonly lock: string;
  readonly waiting: Waiting;
  readonly behind: Holding | Waiting;
  readonly kind: 'hard' | 'soft';
}

/** Edges in a circle: each waits for the agent of the next, the last for the first. */
export type Cycle = readonly Edge[];

export interface Deadlock {
  readonly cycle: Cycle;
  /** The edge whose wait is to end. */
  readonly victim: Edge;
}

/**
 * Cycles of agents that wait for one another, each with the wait to give up. Queue order counts: where lines are fair,
 * a reader behind a waiting writer waits for that writer, and a graph of holders alone would miss the circle.
 * With the victims' waits gone, no cycle is left.
 */
export function findDeadlocks(
  contests: readonly Contest[],
  isApplying: (agent: string) => boolean = () => false,
): Deadlock[] {
  const given = new Set<Waiting>();
  const found: Deadlock[] = [];
  for (;;) {
    const graph = waitForGraph(contests, given);
    const cycle = findCycle(graph);
    if (!cycle) return found;
    const tight = tighten(graph, cycle);
    const victim = chooseVictim(tight, isApplying);
    found.push({ cycle: tight, victim });
    given.add(victim.waiting);
  }
}

/** What an agent waits for. Asked edge by edge, for a long line has very many. */
export interface Graph {
  readonly agents: readonly string[];
  edgesOf(agent: string): Iterable<Edge>;
}

/** An agent's own locks and places do not stop it: it may run several things at once. */
export function waitForGraph(contests: readonly Contest[], ignored: ReadonlySet<Waiting> = new Set()): Graph {
  const places = new Map<string, { contest: Contest; at: number }[]>();
  for (const contest of contests) {
    contest.waiters.forEach((waiting, at) => {
      if (ignored.has(waiting)) return;
      const known = places.get(waiting.agent);
      if (known) known.push({ contest, at });
      else places.set(waiting.agent, [{ contest, at }]);
    });
  }
  return {
    agents: [...places.keys()],
    *edgesOf(agent) {
      for (const { contest, at } of places.get(agent) ?? []) {
        const waiting = contest.waiters[at] as Waiting;
        const { lock } = contest;
        for (const behind of contest.holders) {
          if (stops(behind, waiting)) yield { lock, waiting, behind, kind: 'hard' };
        }
        for (let place = 0; place < at; place += 1) {
          const behind = contest.waiters[place] as Waiting;
          if (!ignored.has(behind) && stops(behind, waiting)) yield { lock, waiting, behind, kind: 'soft' };
        }
      }
    },
  };
}

const stops = (first: Holding | Waiting, second: Waiting): boolean =>
  first.agent !== second.agent && (first.mode === 'exclusive' || second.mode === 'exclusive');

/** Depth first, with a stack of its own: a line of waiters may be longer than the call stack is deep. */
function findCycle(graph: Graph): Cycle | undefined {
  const done = new Set<string>();
  for (const start of graph.agents) {
    const path: Edge[] = [];
    const onPath = new Map([[start, 0]]);
    const ahead = [iterate(graph.edgesOf(start))];
    while (ahead.length > 0) {
      const next = ahead.at(-1)?.next();
      if (!next || next.done) {
        ahead.pop();
        const agent = path.pop()?.behind.agent ?? start;
        onPath.delete(agent);
        done.add(agent);
        continue;
      }
      const edge = next.value;
      const { agent } = edge.behind;
      const met = onPath.get(agent);
      if (met !== undefined) return [...path.slice(met), edge];
      if (done.has(agent)) continue;
      path.push(edge);
      onPath.set(agent, path.length);
      ahead.push(iterate(graph.edgesOf(agent)));
    }
  }
  return undefined;
}

const iterate = (edges: Iterable<Edge>): Iterator<Edge> => edges[Symbol.iterator]();

/** The shortest cycle among the same agents: without it, someone who only stands in between could be the victim in vain. */
function tighten(graph: Graph, cycle: Cycle): Cycle {
  const members = cycle.map(({ waiting }) => waiting.agent);
  const all = members.map((agent) => shortestThrough(graph, agent, new Set(members)));
  return all.reduce<Cycle>((best, one) => (one && one.length < best.length ? one : best), cycle);
}

function shortestThrough(graph: Graph, start: string, members: ReadonlySet<string>): Cycle | undefined {
  const cameBy = new Map<string, Edge>();
  const queue = [start];
  for (let agent = queue.shift(); agent !== undefined; agent = queue.shift()) {
    for (const edge of graph.edgesOf(agent)) {
      const to = edge.behind.agent;
      if (to === start) return backTo(start, edge, cameBy);
      if (!members.has(to) || cameBy.has(to)) continue;
      cameBy.set(to, edge);
      queue.push(to);
    }
  }
  return undefined;
}

function backTo(start: string, last: Edge, cameBy: ReadonlyMap<string, Edge>): Cycle {
  const cycle = [last];
  for (let { agent } = last.waiting; agent !== start; ) {
    const edge = cameBy.get(agent) as Edge;
    cycle.unshift(edge);
    ({ agent } = edge.waiting);
  }
  return cycle;
}

/** The youngest, for it has done the least; one that applies a change only if all do; priority only among equals. */
function chooseVictim(cycle: Cycle, isApplying: (agent: string) => boolean): Edge {
  const applies = ({ waiting }: Edge) => Number(isApplying(waiting.agent));
  const [victim] = cycle.toSorted(
    (a, b) =>
      applies(a) - applies(b) ||
      b.waiting.since - a.waiting.since ||
      a.waiting.priority - b.waiting.priority ||
      a.waiting.lockId.localeCompare(b.waiting.lockId),
  );
  return victim as Edge;
}
