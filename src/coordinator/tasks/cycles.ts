/** Edges of a directed graph: from a node to the nodes it needs. Nodes without a row have none. */
export type Edges = ReadonlyMap<string, readonly string[]>;

/**
 * The groups of nodes that wait for one another: strongly connected components of more than one node, and nodes that
 * need themselves. Tarjan's algorithm with its stack as data, since a chain of 10,000 would overflow the call stack.
 */
export function knots(edges: Edges): string[][] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const onStack = new Set<string>();
  const stack: string[] = [];
  const path: { readonly node: string; next: number }[] = [];

  const enter = (node: string) => {
    index.set(node, index.size);
    low.set(node, index.size - 1);
    stack.push(node);
    onStack.add(node);
    path.push({ node, next: 0 });
  };
  const lower = (node: string, value: number) => low.set(node, Math.min(low.get(node)!, value));

  const leave = (node: string) => {
    const parent = path.at(-1)?.node;
    if (parent !== undefined) lower(parent, low.get(node)!);
    if (low.get(node) !== index.get(node)) return;
    const members = stack.splice(stack.lastIndexOf(node));
    for (const member of members) onStack.delete(member);
    if (members.length > 1 || edges.get(node)?.includes(node)) found.push(members);
  };

  for (const root of edges.keys()) {
    if (index.has(root)) continue;
    enter(root);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const next = edges.get(top.node)?.[top.next++];
      if (next === undefined) {
        path.pop();
        leave(top.node);
      } else if (!index.has(next)) {
        enter(next);
      } else if (onStack.has(next)) {
        lower(top.node, index.get(next)!);
      }
    }
  }
  return found;
}

/** One way round a knot, from its first node back to it, for people: the shortest, found breadth first. */
export function roundTrip(knot: readonly string[], edges: Edges): string[] {
  const start = knot.toSorted()[0]!;
  const members = new Set(knot);
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const node of queue) {
    for (const next of edges.get(node) ?? []) {
      if (next === start) return trail(cameFrom, start, node);
      if (!members.has(next) || cameFrom.has(next)) continue;
      cameFrom.set(next, node);
      queue.push(next);
    }
  }
  return [start];
}

function trail(cameFrom: ReadonlyMap<string, string>, start: string, end: string): string[] {
  const steps = [start];
  for (let at = end; at !== start; at = cameFrom.get(at)!) steps.push(at);
  return [...steps, start].reverse();
}
