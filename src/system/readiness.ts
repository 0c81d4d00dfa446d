import { type Clock, isoTime, withDeadline } from '../clock.ts';
import { asReeveError, ReeveError } from '../errors.ts';
import type { Dependency, Facts } from './dependency.ts';

export interface DependencyState {
  readonly name: string;
  readonly ok: boolean;
  readonly required: boolean;
  readonly embedded: boolean;
  readonly address: string;
  readonly latency_ms: number;
  /** Since when it has been as it is. */
  readonly since: string;
  readonly facts: Facts;
  readonly code?: string;
  readonly problem?: string;
  readonly next?: string;
}

export interface ReadinessOptions {
  readonly dependencies: readonly Dependency[];
  readonly clock: Clock;
  readonly explain: (error: unknown) => ReeveError | undefined;
}

const PATIENCE_MS = 2_000;

/** Asks the dependencies how they are. Callers at the same moment share one answer, so that probes cannot add load. */
export class Readiness {
  readonly #options: ReadinessOptions;
  readonly #since = new Map<string, { ok: boolean; at: string }>();
  #asking: Promise<readonly DependencyState[]> | undefined;
  #draining = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** From now on the daemon is not ready, whatever its dependencies say: load balancers look elsewhere. */
  drain(): void {
    this.#draining = true;
  }

  get draining(): boolean {
    return this.#draining;
  }

  async ask(): Promise<readonly DependencyState[]> {
    this.#asking ??= Promise.all(this.#options.dependencies.map((one) => this.#askOne(one))).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOne(dependency: Dependency): Promise<DependencyState> {
    const { clock, explain } = this.#options;
    const { name, required, embedded } = dependency;
    const began = clock.now();
    const late = () => new ReeveError('DEPENDENCY_SLOW', { dependency: name, seconds: PATIENCE_MS / 1000 });
    const answer = await withDeadline(clock, PATIENCE_MS, dependency.check(), late).then(
      (facts) => ({ ok: true, facts }),
      (error: unknown) => {
        const { code, message: problem, next } = explain(error) ?? asReeveError(error);
        return { ok: false, facts: {}, code, problem, next };
      },
    );
    const latency = clock.now() - began;
    return {
      name,
      required,
      embedded,
      address: dependency.address(),
      latency_ms: latency,
      since: this.#sinceWhen(name, answer.ok),
      ...answer,
    };
  }

  #sinceWhen(name: string, ok: boolean): string {
    const before = this.#since.get(name);
    if (before?.ok === ok) return before.at;
    const at = isoTime(this.#options.clock);
    this.#since.set(name, { ok, at });
    return at;
  }
}
