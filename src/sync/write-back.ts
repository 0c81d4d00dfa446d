import picomatch from 'picomatch';
import type { Clock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { ManifestWrite } from '../registry/manifest-edit.ts';
import { hostility } from './paths.ts';
import type { NamedSource } from './source.ts';
import type { Sync } from './sync.ts';

export interface WriteBackOptions {
  readonly sources: readonly NamedSource[];
  readonly sync: Sync;
  readonly clock: Clock;
}

export interface WriteAs {
  readonly message: string;
  readonly by: string;
}

/** Somebody may push something else between our look and our commit; that is no conflict and is looked at again. */
const TRIES = 3;
/** GitHub asks writers to leave a second between commits. */
const BETWEEN_MS = 1_000;

/** Changes files where they live, one commit each, and brings the result here. Writers of one source take turns. */
export class WriteBack {
  readonly #options: WriteBackOptions;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #lastAt = new Map<string, number>();

  constructor(options: WriteBackOptions) {
    this.#options = options;
  }

  /** Refuses with ASSET_CHANGED if the file is not the one the caller saw; both SHAs are in the answer. */
  async write(source: string, write: ManifestWrite, as: WriteAs): Promise<{ readonly commit: string }> {
    const named = this.#options.sources.find(({ name }) => name === source);
    if (!named)
      throw new ReeveError('NO_SUCH_SOURCE', {
        name: source,
        known: this.#options.sources.map(({ name }) => name).join(', '),
      });
    refuseUnseen(named, write.path);
    const before = this.#turns.get(source) ?? Promise.resolve();
    const turn = before.then(() => this.#commit(named, write, as));
    this.#turns.set(
      source,
      turn.catch(() => {}),
    );
    const written = await turn;
    await this.#bring(source, written.commit);
    return written;
  }

  /** Another daemon may be at it, and may have looked before the commit was there. */
  async #bring(source: string, commit: string): Promise<void> {
    const { sync, clock } = this.#options;
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const { outcome } = await sync.ask(source, { trigger: 'write', barrier: commit })[0]!.done;
      if (outcome !== 'busy') return;
      await clock.sleep(BETWEEN_MS);
    }
  }

  async #commit({ name, source }: NamedSource, { path, bytes, base }: ManifestWrite, { message, by }: WriteAs) {
    const signal = AbortSignal.timeout(60_000);
    if (source.kind === 'github') await this.#takeBreath(name, signal);
    for (let attempt = 1; ; attempt++) {
      const head = await source.head({ signal });
      const expected = head.outcome === 'at' ? head.commit : '';
      const { entries } = await source.list(expected, signal);
      const actual = entries.find((entry) => entry.path === path)?.sha;
      if (actual !== base)
        throw new ReeveError('ASSET_CHANGED', { id: path, expected: base ?? 'nothing', actual: actual ?? 'nothing' });
      try {
        const author = { name: by, email: `${by.replace(/[^\w.-]/g, '-')}@reeve.invalid` };
        return await source.write({ files: new Map([[path, bytes]]), expected, message, author }, signal);
      } catch (error) {
        if (!(error instanceof ReeveError) || error.code !== 'SOURCE_MOVED' || attempt >= TRIES) throw error;
      }
    }
  }

  async #takeBreath(name: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const wait = (this.#lastAt.get(name) ?? 0) + BETWEEN_MS - clock.now();
    if (wait > 0) await clock.sleep(wait, signal);
    this.#lastAt.set(name, clock.now());
  }
}

/** A file that no sync would look at must not be written either: it would be no asset. */
function refuseUnseen({ include, name }: NamedSource, path: string): void {
  const why = hostility(path);
  if (why)
    throw new ReeveError('ASSET_INVALID', { problem: `the path ${JSON.stringify(path)} cannot be used: ${why}` });
  if (picomatch.isMatch(path, [...include], { dot: true })) return;
  const problem = `${path} is none of the files that ${name} is searched for: ${include.join(', ')}`;
  throw new ReeveError('ASSET_INVALID', { problem });
}
