import { readFileSync } from 'node:fs';

/** The version of this reeve, from the one place that has it. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
