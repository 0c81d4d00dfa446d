export const CATEGORIES = ['tool', 'prompt', 'skill'] as const;
export type Category = (typeof CATEGORIES)[number];
