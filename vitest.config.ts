import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Each file starts servers of its own; two at a time is what a two-core machine runs without starving them.
    maxWorkers: 2,
    // Many tests kill and restart real servers. On a gate machine with other work, one of them may meet a stall that is not
    // ours; twice in a row it is.
    retry: process.env.CI ? 1 : 0,
  },
});
