import type { Merge } from './merge.ts';
import type { Correction, Memory, RowMemory } from './prd-db.ts';

/** What is to be remembered in the file and is not yet: it takes no writes at present. */
export class Unsaved implements Memory {
  readonly rows = new Map<string, RowMemory>();
  readonly #forgotten = new Set<string>();
  readonly #corrections = new Map<string, Correction>();

  add({ memories, forgotten, corrections }: Pick<Merge, 'memories' | 'forgotten' | 'corrections'>): void {
    for (const id of forgotten) {
      this.rows.delete(id);
      this.#forgotten.add(id);
    }
    for (const [id, memory] of memories) {
      this.rows.set(id, memory);
      this.#forgotten.delete(id);
    }
    for (const correction of corrections) this.#corrections.set(correction.task_id, correction);
  }

  get forgotten(): string[] {
    return [...this.#forgotten];
  }

  get corrections(): Correction[] {
    return [...this.#corrections.values()];
  }

  get isEmpty(): boolean {
    return this.rows.size + this.#forgotten.size + this.#corrections.size === 0;
  }
}
