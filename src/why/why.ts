import { ReeveError } from '../errors.ts';
import type { Explainer, Explanation } from '../hold.ts';

export interface Answer extends Explanation {
  /** What stands behind what, nearest first. */
  readonly chain: readonly { readonly subject: string; readonly says: string }[];
  readonly next: string;
}

/** Further than this nobody reads. */
const LONGEST_CHAIN = 6;

/** Answers "why does this not go on?" for anything with a name. Each room brings its own explainer. */
export class Why {
  readonly #explainers: readonly Explainer[];

  constructor(explainers: readonly Explainer[]) {
    this.#explainers = explainers;
  }

  async explain(ref: string): Promise<Answer> {
    const first = await this.#ask(ref);
    if (!first) throw new ReeveError('NO_SUCH_REF', { ref: JSON.stringify(ref.slice(0, 80)) });
    const chain = await this.#chain(first);
    return { ...first, chain, next: first.holds[0]?.actions.find(({ allowed }) => allowed)?.command ?? 'reeve status' };
  }

  /** A circle is followed once around. */
  async #chain(first: Explanation) {
    const seen = new Set([first.subject]);
    const chain: { subject: string; says: string }[] = [];
    let at: Explanation | undefined = first;
    while (at && chain.length < LONGEST_CHAIN) {
      const next: Explanation | undefined = await this.#firstOf(at.upstream);
      if (!next) break;
      chain.push({ subject: next.subject, says: next.says });
      at = seen.has(next.subject) ? undefined : next;
      seen.add(next.subject);
    }
    return chain;
  }

  async #firstOf(refs: readonly string[]): Promise<Explanation | undefined> {
    for (const ref of refs) {
      const found = await this.#ask(ref);
      if (found) return found;
    }
    return undefined;
  }

  async #ask(ref: string): Promise<Explanation | undefined> {
    for (const explain of this.#explainers) {
      const found = await explain(ref);
      if (found) return found;
    }
    return undefined;
  }
}
