import { enableCompileCache } from 'node:module';

// Compiled code is kept between runs. This comes before the import of anything it could serve.
enableCompileCache();
const { main } = await import('./main.ts');
process.exitCode = await main(process.argv.slice(2));
