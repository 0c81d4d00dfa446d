import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TestFolder extends Disposable {
  readonly path: string;
  /** Writes a file into it and returns its path. */
  write(name: string, text: string): string;
}

/** A folder of its own that is gone when the test is over: `using folder = testFolder()`. */
export function testFolder(): TestFolder {
  const path = mkdtempSync(join(tmpdir(), 'reeve-test-'));
  return {
    path,
    write: (name, text) => {
      const file = join(path, name);
      writeFileSync(file, text);
      return file;
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
