import { enableCompileCache } from 'node:module';
import { readVersion } from '../version.ts';

const argv = process.argv.slice(2);
if (argv.length === 1 && argv[0] === '--version') {
  // What scripts ask first needs none of the rest.
  process.stdout.write(`${readVersion()}\n`);
} else {
  // Compiled code is kept between runs. This comes before the import of anything it could serve.
  enableCompileCache();
  const { main } = await import('./main.ts');
  process.exitCode = await main(argv);
}
