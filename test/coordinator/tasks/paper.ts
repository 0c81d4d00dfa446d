import { USUAL } from './room.ts';

/** The tasks of the model: C needs A and B, D needs C; E and F touch the same files; H does without G, I fails with it. */
export const TASKS = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I'] as const;
export const NEEDS: Readonly<Record<string, readonly string[]>> = { C: ['A', 'B'], D: ['C'], H: ['G'], I: ['G'] };
export const POLICY: Readonly<Record<string, 'skip' | 'fail'>> = { H: 'skip', I: 'fail' };
export const FILES: Readonly<Record<string, string>> = { E: 'src/', F: 'src/a.ts' };

interface Holder {
  readonly agent: string;
  until: number;
}

/** What the queue should be, as simply as it can be said. Time is in steps of ten seconds, longer than any pause. */
export class Paper {
  now = 0;
  readonly ended = new Map<string, 'done' | 'failed'>();
  readonly held = new Map<string, Holder>();
  readonly attempts = new Map<string, number>();
  readonly open = new Map<string, Set<string>>(TASKS.map((id) => [id, new Set(NEEDS[id])]));
  readonly delayed = new Set<string>();
  readonly aside = new Set<string>();
  readonly priority = new Map<string, number>();
  /** Popped from the list by a plain client, and not found out yet. */
  readonly popped = new Set<string>();
  isPaused = false;

  isOpen = (id: string): boolean => !this.ended.has(id) && !this.held.has(id);

  /** Nothing but its files may keep it. */
  isReady(id: string): boolean {
    return this.isOpen(id) && this.open.get(id)!.size === 0 && !this.delayed.has(id) && !this.aside.has(id);
  }

  collides(id: string): boolean {
    return Boolean(FILES[id]) && [...this.held.keys()].some((other) => other !== id && Boolean(FILES[other]));
  }

  inOrder(): string[] {
    return [...TASKS].sort((a, b) => this.#rank(a) - this.#rank(b) || TASKS.indexOf(a) - TASKS.indexOf(b));
  }

  /** What a claim gets: nothing that a plain client has taken. It may or may not find out on its way that one has. */
  claim(agent: string): string | undefined {
    const own = this.taskOf(agent);
    if (own || this.isPaused) return own;
    const best = this.inOrder().find((id) => this.isReady(id) && !this.popped.has(id) && !this.collides(id));
    if (best) this.held.set(best, { agent, until: this.now + 3 });
    return best;
  }

  taskOf(agent: string): string | undefined {
    return [...this.held].find(([, holder]) => holder.agent === agent)?.[0];
  }

  complete(id: string): void {
    this.#release(id);
    this.ended.set(id, 'done');
    this.delayed.delete(id);
    for (const open of this.open.values()) open.delete(id);
  }

  /** An attempt that counts: a pause, or the end. */
  spend(id: string, pauses: boolean): 'retry' | 'failed' {
    this.#release(id);
    const spent = (this.attempts.get(id) ?? 0) + 1;
    this.attempts.set(id, spent);
    if (spent >= USUAL.maxAttempts) {
      this.fail(id);
      return 'failed';
    }
    if (pauses) this.delayed.add(id);
    return 'retry';
  }

  giveBack(id: string, pauses = false): void {
    this.#release(id);
    if (pauses) this.delayed.add(id);
  }

  /** For good; and what that means for those that wait, each by its own policy. */
  fail(id: string): void {
    this.#release(id);
    this.ended.set(id, 'failed');
    this.delayed.delete(id);
    for (const other of TASKS.filter((one) => NEEDS[one]?.includes(id))) {
      if (POLICY[other] === 'skip') this.open.get(other)!.delete(id);
      if (POLICY[other] === 'fail' && this.isOpen(other)) this.fail(other);
    }
  }

  reopen(id: string): void {
    if (this.held.has(id)) return;
    if (this.ended.has(id)) this.#bringBack(id);
    this.attempts.set(id, 0);
    this.delayed.delete(id);
  }

  judge(id: string, to: 'completed' | 'failed' | 'running' | 'open'): void {
    const isRunning = this.held.has(id);
    if (to === 'open' && isRunning) this.giveBack(id);
    else if (to === 'open') this.reopen(id);
    if (to === 'open') return;
    if (to === 'running' && isRunning) return;
    const end = to === 'completed' ? 'done' : 'failed';
    if (to !== 'running' && this.ended.get(id) === end) return;
    if (isRunning) this.#release(id);
    if (this.ended.has(id)) this.#bringBack(id);
    this.popped.delete(id);
    if (to === 'completed') this.complete(id);
    else if (to === 'failed') this.fail(id);
    else this.held.set(id, { agent: `raw.${id}`, until: this.now + USUAL.rawLeaseMs / 10_000 });
  }

  /** What the daemon finds out when it looks at the list. */
  reconcile(): void {
    for (const id of this.popped) if (this.isReady(id)) this.trust(id);
    this.popped.clear();
  }

  /** Ten seconds: pauses end, and so do leases that nobody renewed. Answers whose. */
  tick(): string[] {
    this.now++;
    this.delayed.clear();
    const lost = [...this.held].filter(([, { until }]) => until <= this.now);
    for (const [id, { agent }] of lost) {
      // A plain client that never said a word has not tried.
      if (agent === `raw.${id}` && !this.#spoke.has(id)) this.giveBack(id);
      else this.spend(id, false);
    }
    return lost.map(([id]) => id).sort();
  }

  /** Everyone who can send a heartbeat does. */
  beat(agent: string): void {
    for (const holder of this.held.values()) if (holder.agent === agent) holder.until = this.now + 3;
  }

  /** A plain client says that it works: it is trusted longer. */
  readonly #spoke = new Set<string>();
  spoke(id: string): void {
    this.#spoke.add(id);
    this.held.get(id)!.until = this.now + USUAL.rawLeaseMs / 10_000;
  }

  /** Found out: it has the task for as long as one may stay silent who has not said a word. */
  trust(id: string): void {
    this.popped.delete(id);
    this.#spoke.delete(id);
    this.held.set(id, { agent: `raw.${id}`, until: this.now + 3 });
  }

  #release(id: string): void {
    this.held.delete(id);
    this.popped.delete(id);
  }

  #bringBack(id: string): void {
    this.ended.delete(id);
    for (const need of NEEDS[id] ?? []) if (this.ended.get(need) !== 'done') this.open.get(id)!.add(need);
    for (const other of TASKS) {
      if (NEEDS[other]?.includes(id) && !this.ended.has(other)) this.open.get(other)!.add(id);
    }
  }

  #rank = (id: string): number => this.priority.get(id) ?? 5;
}
