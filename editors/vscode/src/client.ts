import type * as vscode from 'vscode';

/** The language server, as features see it; it may be started anew at any time. */
export interface Server {
  /** Whether it can be asked now. */
  readonly isRunning: boolean;

  /**
   * Runs a command of the server's, such as `specedit.rewrite`; while the server starts, that is waited for.
   *
   * @throws an Error with a message for the user, which says what to do.
   */
  command<T>(name: string, argument?: object): Promise<T>;

  /** Calls `handler` with what each notification of that method tells; holds over restarts. */
  onNotification(method: string, handler: (params: unknown) => void): vscode.Disposable;

  /** Has `handler` run what a code action names as a command of the server's; it is given the command's argument. */
  takeOver(command: string, handler: (argument: unknown) => unknown): vscode.Disposable;

  /** It ended, or will be started anew: what was under way in it is lost. */
  readonly onDidStop: vscode.Event<void>;
}
