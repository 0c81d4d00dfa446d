/** Something the daemon needs to do its work, or can do without for a while. */
export interface Dependency {
  readonly name: string;
  /** Without it the daemon is not ready. */
  readonly required: boolean;
  /** Run by the daemon itself, from defaults, rather than pointed to by a person. */
  readonly embedded: boolean;
  /** Where it is, for people; without secrets. */
  address(): string;
  /** Resolves with what is worth showing when it works; rejects when it does not. */
  check(): Promise<Facts>;
}

export type Facts = Readonly<Record<string, string | number | boolean>>;
