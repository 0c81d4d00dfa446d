import type { Clock } from '../clock.ts';
import { isoTime } from '../clock.ts';
import type { Finding } from './doctor.ts';
import type { DependencyState, Readiness } from './readiness.ts';

export interface SystemOptions {
  readonly version: string;
  readonly instance: string;
  readonly project: string;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly readiness: Readiness;
  /** Whether every call needs a token by now. */
  readonly needsTokens: () => Promise<boolean>;
  readonly address: () => string;
  /** The masked configuration and where each value came from. */
  readonly config: () => {
    readonly settings: unknown;
    readonly sources: Readonly<Record<string, string>>;
    readonly file?: string | undefined;
  };
  readonly diagnose: () => Promise<readonly Finding[]>;
}

/** What the daemon knows about itself. */
export class System {
  readonly #options: SystemOptions;
  readonly #startedAt: string;
  readonly #began: number;

  constructor(options: SystemOptions) {
    this.#options = options;
    this.#startedAt = isoTime(options.clock);
    this.#began = options.clock.now();
  }

  get version(): string {
    return this.#options.version;
  }

  get project(): string {
    return this.#options.project;
  }

  get instance(): string {
    return this.#options.instance;
  }

  /** Alive means that this very answer was given; it asks nobody else. */
  health() {
    return { alive: true, version: this.version, pid: process.pid, uptime_seconds: this.#uptime() };
  }

  async readiness(): Promise<{ ready: boolean; draining: boolean; dependencies: readonly DependencyState[] }> {
    const dependencies = await this.#options.readiness.ask();
    const { draining } = this.#options.readiness;
    const ready = !draining && dependencies.every(({ ok, required }) => ok || !required);
    return { ready, draining, dependencies };
  }

  /** Where this daemon is reached. */
  get address(): string {
    return this.#options.address();
  }

  async status() {
    const { ready, draining, dependencies } = await this.readiness();
    const degraded = dependencies.some(({ ok }) => !ok);
    const { version, instance, project, dataDir, address, needsTokens } = this.#options;
    // Also told when the store is away: then nobody knows.
    const closed = await needsTokens().catch(() => undefined);
    return {
      state: draining ? 'draining' : !ready ? 'not ready' : degraded ? 'degraded' : 'ready',
      version,
      instance,
      project,
      address: address(),
      data_dir: dataDir,
      pid: process.pid,
      started_at: this.#startedAt,
      uptime_seconds: this.#uptime(),
      identity: closed === undefined ? 'unknown' : closed ? 'tokens' : 'local',
      dependencies,
    } as const;
  }

  config() {
    return this.#options.config();
  }

  doctor(): Promise<readonly Finding[]> {
    return this.#options.diagnose();
  }

  #uptime(): number {
    return Math.round((this.#options.clock.now() - this.#began) / 1000);
  }
}
