import { ReeveError } from '../errors.ts';
import type { Explainer, Explanation } from '../hold.ts';

export interface Answer extends Explanation {
  /** What stands behind what, nearest first. */
  readonly chain: readonly { readonly subject: string; readonly says: string }[];
}

/** Further than this nobody reads. */
const LONGEST_CHAIN = 6;

/** Answers "why does this not go on?" for anything with a name. Each room brings its own explainer. */
export class Why {
  readonly #explainers: readonly Explainer[];

  constructor(explainers: readonly Explainer[]) {
    this.#explainers = explainers;
  }

  async explain(ref: string, asker: string): Promise<Answer> {
    const first = await this.#ask(ref, asker);
    if (!first) throw new ReeveError('NO_SUCH_REF', { ref: JSON.stringify(ref.slice(0, 80)) });
    return { ...first, chain: await this.#chain(first, asker) };
  }

  /** A circle is followed once around. */
  async #chain(first: Explanation, asker: string) {
    const seen = new Set([first.subject]);
    const chain: { subject: string; says: string }[] = [];
    let at: Explanation | undefined = first;
    while (at && chain.length < LONGEST_CHAIN) {
      const next: Explanation | undefined = await this.#firstOf(at.upstream, asker);
      if (!next) break;
      chain.push({ subject: next.subject, says: next.says });
      at = seen.has(next.subject) ? undefined : next;
      seen.add(next.subject);
    }
    return chain;
  }

  async #firstOf(refs: readonly string[], asker: string): Promise<Explanation | undefined> {
    for (const ref of refs) {
      const found = await this.#ask(ref, asker);
      if (found) return found;
    }
    return undefined;
  }

  async #ask(ref: string, asker: string): Promise<Explanation | undefined> {
    for (const explain of this.#explainers) {
      const found = await explain(ref, asker);
      if (found) return found;
    }
    return undefined;
  }
}
