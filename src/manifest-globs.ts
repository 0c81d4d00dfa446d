/** Where manifests are looked for, unless the settings say otherwise. */
export const MANIFESTS = ['**/manifest.{yaml,yml}', '{tools,prompts,skills}/**/*.{yaml,yml}'] as const;
