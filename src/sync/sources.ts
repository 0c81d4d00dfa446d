import type { Clock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import { directorySource } from './directory-source.ts';
import { gitSource } from './git-source.ts';
import { type GithubClient, type GithubLogin, githubClient } from './github-client.ts';
import { githubSource } from './github-source.ts';
import type { GitSurroundings } from './run-git.ts';
import type { NamedSource } from './source.ts';

/** What the settings say about one source. */
export interface SourceSettings {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly github?: string | undefined;
  readonly git?: string | undefined;
  readonly dir?: string | undefined;
  /** The folder is only where assets would be looked for: nobody named it. */
  readonly optional?: boolean | undefined;
  readonly branch?: string | undefined;
  readonly apiUrl?: string | undefined;
  readonly token?: string | undefined;
  readonly include?: readonly string[] | undefined;
  readonly schedule?: string | undefined;
  readonly webhookSecret?: string | undefined;
  readonly previousWebhookSecret?: string | undefined;
  readonly webhookId?: number | undefined;
}

export interface SourcesSettings {
  readonly assets: {
    readonly dir: string;
    readonly include: readonly string[];
    readonly sources: readonly SourceSettings[];
  };
  readonly github: {
    readonly repo?: string | undefined;
    readonly branch?: string | undefined;
    readonly token?: string | undefined;
    readonly apiUrl: string;
    readonly appId?: string | undefined;
    readonly appPrivateKey?: string | undefined;
    readonly appInstallationId?: string | undefined;
    readonly webhookSecret?: string | undefined;
    readonly previousWebhookSecret?: string | undefined;
    readonly webhookId?: number | undefined;
  };
}

export interface MakeOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly surroundings: GitSurroundings;
}

export interface MadeSource extends NamedSource {
  readonly settings: SourceSettings;
  readonly client?: GithubClient | undefined;
}

/** The sources of the settings: the list if there is one, else the repository, else the folder, which need not be there unless it was named. */
export function sourceSettings({ assets, github }: SourcesSettings, isDirNamed: boolean): readonly SourceSettings[] {
  if (assets.sources.length > 0) return refuseDoubles(assets.sources);
  if (github.repo) return [{ name: 'github', github: github.repo, branch: github.branch }];
  return [{ name: 'assets', dir: assets.dir, optional: !isDirNamed }];
}

export function makeSource(of: SourceSettings, settings: SourcesSettings, options: MakeOptions): MadeSource {
  const { clock, surroundings } = options;
  const about = {
    name: of.name,
    namespace: of.namespace,
    include: of.include ?? settings.assets.include,
    settings: of,
  };
  if (of.git) return { ...about, source: gitSource({ dir: of.git, branch: of.branch, surroundings }) };
  if (of.dir) return { ...about, source: directorySource({ dir: of.dir, clock, optional: of.optional }) };
  const repo = of.github as string;
  const apiUrl = of.apiUrl ?? settings.github.apiUrl;
  const address = `${webHost(apiUrl)}/${repo}${of.branch ? `@${of.branch}` : ''}`;
  const client = githubClient({
    apiUrl,
    login: loginOf(of, settings.github),
    source: address,
    fetch: options.fetch,
    clock,
  });
  return { ...about, client, source: githubSource({ client, repo, branch: of.branch, address }) };
}

function loginOf({ token }: SourceSettings, github: SourcesSettings['github']): GithubLogin {
  const { appId, appPrivateKey: privateKey, appInstallationId: installationId } = github;
  if (token) return { token };
  if (appId && privateKey && installationId) return { appId, privateKey, installationId };
  if (appId || privateKey || installationId) {
    const problems = '  github: appId, appPrivateKey and appInstallationId belong together; one of them is missing';
    throw new ReeveError('CONFIG_INVALID', { problems });
  }
  return { token: github.token };
}

/** Where people see it: github.com, not api.github.com. */
const webHost = (apiUrl: string): string => new URL(apiUrl).host.replace(/^api\./, '');

function refuseDoubles(sources: readonly SourceSettings[]): readonly SourceSettings[] {
  for (const [what, values] of [
    ['name', sources.map(({ name }) => name)],
    ['namespace', sources.map(({ namespace = '' }) => namespace)],
  ] as const) {
    const twice = values.find((value, at) => values.indexOf(value) !== at);
    if (twice === undefined) continue;
    const problems = `  assets.sources: two of them have the ${what} ${twice === '' ? '"" (none)' : twice}`;
    throw new ReeveError('CONFIG_INVALID', { problems });
  }
  return sources;
}

/** The secrets that sign the deliveries of a source; one of its own replaces both of the common ones. */
export function webhookSecrets(of: SourceSettings, common: SourcesSettings['github']): readonly string[] {
  const { webhookSecret, previousWebhookSecret } = of.webhookSecret === undefined ? common : of;
  return [webhookSecret, of.previousWebhookSecret ?? previousWebhookSecret].filter((one) => one !== undefined);
}
