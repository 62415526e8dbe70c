import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { Run, type Server, type Start } from './client';
import { CompletionReports } from './completionReports';
import { activeInterpreter } from './interpreter';
import { withoutLinks } from './messageText';
import { filledIn } from './placeholders';
import { type Running, whyNot } from './probe';
import { Restarts } from './restarts';
import { type Candidate, candidates, onPath, type Surroundings, search } from './server';
import { environment } from './settings';

/** How the server is; `reason` is for the user, and says what happened. */
export type ServerState =
  | { readonly kind: 'starting' }
  | { readonly kind: 'running'; readonly version: string; readonly command: string }
  /** `setting` names the one that says where the server is, where one does. */
  | { readonly kind: 'missing'; readonly reason: string; readonly setting: string | null }
  | { readonly kind: 'failed'; readonly reason: string };

const NOT_RUNNING = 'SpecEdit is not running. Start it by "SpecEdit: Restart"; "SpecEdit: Show Log" shows why.';
const ENDED = 'The server of SpecEdit ended before it answered. It is started anew: ask again in a moment.';
const MOST_CRASHES = 3;
const CRASH_SECONDS = 180;

/** Finds the server, starts it, and starts it anew: after a crash, and when it is told to. */
export class Supervisor implements Server, vscode.Disposable {
  private readonly stopped = new vscode.EventEmitter<void>();
  private readonly changed = new vscode.EventEmitter<ServerState>();
  private readonly handlers = new Map<string, Set<(params: unknown) => void>>();
  private readonly takenOver = new Map<string, (argument: unknown) => unknown>();
  private readonly reports = new CompletionReports((method, params) => this.run?.notify(method, params));
  private readonly restarts = new Restarts(MOST_CRASHES, CRASH_SECONDS);
  private run: Run | null = null;
  private turn: Promise<void> = Promise.resolve();
  private asked = 0;
  private isDisposed = false;
  private current: ServerState = { kind: 'starting' };
  /** What the Python extension said when the server was looked for; undefined where it was not asked. */
  private interpreter: string | null | undefined;

  /** It ended, or will be started anew. */
  readonly onDidStop = this.stopped.event;
  /** It is in another state now. */
  readonly onDidChangeState = this.changed.event;

  /** @param log where all that is of interest goes, that the server logs too */
  constructor(private readonly log: vscode.LogOutputChannel) {}

  /** How the server is. */
  get state(): ServerState {
    return this.current;
  }

  get isRunning(): boolean {
    return this.current.kind === 'running';
  }

  async command<T>(name: string, argument?: object): Promise<T> {
    await this.turn;
    const { run } = this;
    if (run === null || !this.isRunning) {
      throw new Error(NOT_RUNNING);
    }
    try {
      const sent = { command: name, arguments: argument === undefined ? [] : [argument] };
      return await run.request<T>('workspace/executeCommand', sent);
    } catch (error) {
      throw run === this.run
        ? new Error(withoutLinks(error instanceof Error ? error.message : String(error)))
        : new Error(ENDED);
    }
  }

  onNotification(method: string, handler: (params: unknown) => void): vscode.Disposable {
    const handlers = this.handlers.get(method) ?? new Set();
    if (handlers.size === 0) {
      this.handlers.set(method, handlers);
      this.listen(method);
    }
    handlers.add(handler);
    return new vscode.Disposable(() => handlers.delete(handler));
  }

  onProgress(token: string, handler: (value: unknown) => void): vscode.Disposable {
    return this.run?.onProgress(token, handler) ?? new vscode.Disposable(() => undefined);
  }

  takeOver(command: string, handler: (argument: unknown) => unknown): vscode.Disposable {
    this.takenOver.set(command, handler);
    return new vscode.Disposable(() => this.takenOver.delete(command));
  }

  /** Ends the server if it runs, finds it, and starts it; of several at once only the last is done. */
  restart(): Promise<void> {
    this.restarts.forget();
    return this.renew();
  }

  /** Whether the Python extension has something else to say now than when the server was looked for. */
  async wouldStartOtherwise(): Promise<boolean> {
    return this.interpreter !== undefined && this.interpreter !== (await activeInterpreter());
  }

  /** Ends the server, and waits for that. */
  async end(): Promise<void> {
    this.isDisposed = true;
    await this.turn;
    await this.stop();
  }

  dispose(): void {
    void this.end();
    this.reports.dispose();
    this.stopped.dispose();
    this.changed.dispose();
  }

  private renew(): Promise<void> {
    this.asked += 1;
    const number = this.asked;
    this.turn = this.turn.then(async () => {
      if (number !== this.asked || this.isDisposed) {
        return;
      }
      await this.stop();
      this.change({ kind: 'starting' });
      this.change(await this.started().catch((error: unknown) => this.failed(error, 'could not be started')));
    });
    return this.turn;
  }

  private async stop(): Promise<void> {
    const { run } = this;
    this.run = null;
    if (run !== null) {
      this.stopped.fire();
      await run.end();
    }
  }

  private async started(): Promise<ServerState> {
    const running = runningServer();
    const candidate = await this.find(running);
    if ('kind' in candidate) {
      return candidate;
    }
    const run = this.made({ candidate, running });
    this.run = run;
    // Before it starts: it tells how the engine is as soon as it may.
    for (const method of this.handlers.keys()) {
      this.listen(method);
    }
    try {
      await run.begin();
    } catch (error) {
      this.run = null;
      await run.end();
      return this.failed(error, `(${candidate.command}) ended or did not answer when it was started`);
    }
    this.reports.focused();
    this.log.info(`started ${candidate.command} (${candidate.origin}), version ${run.version || 'unknown'}`);
    return { kind: 'running', version: run.version, command: candidate.command };
  }

  private made(start: Start): Run {
    const run: Run = new Run(start, this.log, this.takenOver, this.reports, () => this.crashed(run));
    return run;
  }

  /** What starts the server, or why nothing does. */
  private async find(running: Running): Promise<Candidate | ServerState> {
    this.interpreter = undefined;
    const around = surroundings(running.env, async () => {
      this.interpreter = await activeInterpreter();
      return this.interpreter;
    });
    const { found, failures } = await search(candidates(around), (each) => whyNot(each, running));
    for (const { candidate, reason } of failures) {
      this.log.info(`not started by ${candidate.command} (${candidate.origin}): ${reason}`);
    }
    if (found !== null) {
      return found;
    }
    const named = around.path || around.interpreter ? failures[0] : undefined;
    if (named !== undefined) {
      const { command, origin } = named.candidate;
      const reason = `SpecEdit can't be started by ${command}, which the setting ${origin} names: ${named.reason}`;
      return { kind: 'missing', reason, setting: origin };
    }
    const reason = 'SpecEdit found neither the program specedit nor a Python that has it installed';
    return { kind: 'missing', reason, setting: null };
  }

  private failed(error: unknown, what: string): ServerState {
    this.log.error(error instanceof Error ? error : String(error));
    return { kind: 'failed', reason: `The server of SpecEdit ${what}` };
  }

  private crashed(run: Run): void {
    if (this.run !== run) {
      return;
    }
    this.run = null;
    this.stopped.fire();
    if (this.restarts.crashed()) {
      this.log.warn('the server ended unexpectedly, and is started anew');
      void this.renew();
    } else {
      this.change({ kind: 'failed', reason: `The server of SpecEdit ended ${MOST_CRASHES + 1} times within minutes` });
    }
  }

  private listen(method: string): void {
    this.run?.onNotification(method, (params) => {
      for (const handler of this.handlers.get(method) ?? []) {
        handler(params);
      }
    });
  }

  private change(state: ServerState): void {
    this.current = state;
    if (!this.isDisposed) {
      this.changed.fire(state);
    }
  }
}

/** How every process of the server is to run. */
export function runningServer(): Running {
  return { cwd: homedir(), env: { ...process.env, ...environment(setting('server.environment')) } };
}

function setting(key: string): unknown {
  return vscode.workspace.getConfiguration('specedit', vscode.workspace.workspaceFolders?.[0]).get(key);
}

function surroundings(env: NodeJS.ProcessEnv, activeInterpreter: Surroundings['activeInterpreter']): Surroundings {
  const folders = (vscode.workspace.workspaceFolders ?? [])
    .filter((folder) => folder.uri.scheme === 'file')
    .map((folder) => folder.uri.fsPath);
  const places = { home: homedir(), workspaceFolder: folders[0] ?? null, env };
  const path = (value: unknown) => (typeof value === 'string' ? filledIn(value, places) : '');
  const isWindows = process.platform === 'win32';
  return {
    isWindows,
    isTrusted: vscode.workspace.isTrusted,
    folders,
    path: path(setting('server.path')),
    interpreter: path(setting('server.interpreter')),
    defaultInterpreter: path(
      vscode.workspace.getConfiguration('python', vscode.workspace.workspaceFolders?.[0]).get('defaultInterpreterPath'),
    ),
    activeInterpreter,
    onPath: (name) => onPath(name, env[isWindows ? 'Path' : 'PATH'] ?? env.PATH ?? '', isWindows, isProgram),
  };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
