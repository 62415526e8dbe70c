/** Where the history is kept: `vscode.Memento`, as far as it is needed. */
export interface Store {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

const KEY = 'specedit.instructions';
const MOST = 100;

/** The instructions that were given, the last one first. */
export class History {
  /** Kept in `store` over restarts of the editor. */
  constructor(private readonly store: Store) {}

  /** All of them. */
  get instructions(): readonly string[] {
    const kept = this.store.get<unknown>(KEY);
    return Array.isArray(kept) ? kept.filter((item) => typeof item === 'string') : [];
  }

  /** Remember one; it is there once, and the oldest are forgotten. */
  async add(instruction: string): Promise<void> {
    const others = this.instructions.filter((other) => other !== instruction);
    await this.store.update(KEY, [instruction, ...others].slice(0, MOST));
  }

  /** Forget all of them. */
  async clear(): Promise<void> {
    await this.store.update(KEY, undefined);
  }
}

/** An instruction that can be chosen, and what had been typed when it was offered. */
export interface Offered {
  readonly instruction: string;
  readonly typed: string;
}

/** What can be chosen: what is typed first, then the earlier instructions that hold all its words. */
export function offered(instructions: readonly string[], value: string): Offered[] {
  const typed = value.trim();
  const words = typed.toLowerCase().split(/\s+/);
  const earlier = instructions.filter(
    (instruction) => instruction !== typed && words.every((word) => instruction.toLowerCase().includes(word)),
  );
  return [...(typed ? [typed] : []), ...earlier].map((instruction) => ({ instruction, typed }));
}
