/** How often a server that crashes is started anew before the user has to say so. */
export class Restarts {
  private crashes: number[] = [];

  /**
   * @param most so many crashes are made good by themselves
   * @param seconds within that time; older ones are forgotten
   * @param now gives milliseconds
   */
  constructor(
    private readonly most: number,
    private readonly seconds: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** Counts a crash; whether the server is to be started anew. */
  crashed(): boolean {
    const now = this.now();
    this.crashes = this.crashes.filter((time) => now - time < this.seconds * 1000);
    this.crashes.push(now);
    return this.crashes.length <= this.most;
  }

  /** Begins anew: the user has taken it in hand. */
  forget(): void {
    this.crashes = [];
  }
}
