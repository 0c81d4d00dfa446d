import { makeGitRepo } from '../test/support/git-repo.ts';
import { startGithub } from '../test/support/github.ts';

/**
 * GitHub's stand-in in a process of its own, so that what it does is not counted as the daemon's. It is told what to do by
 * messages: how many manifests to commit, or to count and forget the requests it has seen.
 */
const repo = await makeGitRepo();
const github = await startGithub({ repo, unchecked: true });

process.on('message', (order: { commit?: Record<string, string | null>; count?: true }) => {
  if (order.commit) {
    const files = Object.fromEntries(Object.entries(order.commit).map(([path, text]) => [path, text ?? undefined]));
    process.send!({ commit: repo.commit(files) });
  }
  if (order.count) {
    const seen = github.seen.splice(0);
    process.send!({ requests: seen.length, quota: seen.reduce((sum, { cost }) => sum + cost, 0) });
  }
});
process.on(
  'disconnect',
  () =>
    void github[Symbol.asyncDispose]()
      .then(() => repo[Symbol.asyncDispose]())
      .then(() => process.exit(0)),
);
process.send!({ url: github.url, token: github.token, name: github.name, dir: repo.dir });
