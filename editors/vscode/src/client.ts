import * as vscode from 'vscode';
import {
  type ClientCapabilities,
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  MessageType,
  type Middleware,
  RevealOutputChannelOn,
  ShowMessageNotification,
  type ShowMessageParams,
  State,
  type StaticFeature,
  WorkDoneProgress,
} from 'vscode-languageclient/node';
import type { CompletionReports } from './completionReports';
import { withoutLinks } from './messageText';
import type { Running } from './probe';
import type { Candidate } from './server';
import { FOLDER_OPTIONS, nested, OWN_OPTIONS } from './settings';

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

  /** Calls `handler` with what is told of the work that was given this token, until the server stops. */
  onProgress(token: string, handler: (value: unknown) => void): vscode.Disposable;

  /** Has `handler` run what a code action names as a command of the server's; it is given the command's argument. */
  takeOver(command: string, handler: (argument: unknown) => unknown): vscode.Disposable;

  /** It ended, or will be started anew: what was under way in it is lost. */
  readonly onDidStop: vscode.Event<void>;
}

/** How to start the server, once that is known. */
export interface Start {
  readonly candidate: Candidate;
  readonly running: Running;
}

/**
 * One run of the server, from its start to its end. Starting it anew is another run.
 *
 * It shows no messages of its own: whoever started it does.
 */
export class Run {
  private readonly client: LanguageClient;
  private isEnding = false;

  /**
   * @param start what to start
   * @param log where the server's log goes
   * @param takenOver what runs the server's commands in its place
   * @param reports what the server is told of completions
   * @param onCrash called when the server ends that was not told to
   */
  constructor(
    start: Start,
    log: vscode.LogOutputChannel,
    takenOver: ReadonlyMap<string, (argument: unknown) => unknown>,
    reports: CompletionReports,
    onCrash: () => void,
  ) {
    const options: LanguageClientOptions = {
      documentSelector: documentSelector(),
      initializationOptions: nested(OWN_OPTIONS, settings()),
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          // While it starts, whoever waits for that is told.
          if (!this.isEnding && this.client.state === State.Running) {
            onCrash();
          }
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: middleware(takenOver, reports),
    };
    const { command, args } = start.candidate;
    const executable = { command, args: [...args], options: { ...start.running } };
    this.client = new QuietClient('specedit', 'SpecEdit', executable, options);
    this.client.registerFeature(askingFeature);
    this.client.onNotification(ShowMessageNotification.type, show);
  }

  /** The version that the server calls itself. */
  get version(): string {
    return this.client.initializeResult?.serverInfo?.version ?? '';
  }

  /**
   * Starts the server; it can be asked when this has resolved.
   *
   * @throws an Error when it ends, or does not answer within a minute.
   */
  async begin(): Promise<void> {
    let waiting: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      waiting = setTimeout(() => reject(new Error('the server did not answer within a minute')), 60_000);
    });
    try {
      await Promise.race([this.client.start(), late]);
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Ends the server, by force if it takes longer than two seconds. */
  async end(): Promise<void> {
    this.isEnding = true;
    try {
      await this.client.dispose();
    } catch {
      // One that did not start, or does not answer, is ended all the same.
    }
  }

  /** Sends a request. */
  request<T>(method: string, params: object): Promise<T> {
    return this.client.sendRequest<T>(method, params);
  }

  /** Sends a notification; of one that can't be sent no more nothing is heard. */
  notify(method: string, params: object): void {
    if (this.client.state === State.Running) {
      this.client.sendNotification(method, params).catch(() => undefined);
    }
  }

  /** Calls `handler` with what each notification of that method tells. */
  onNotification(method: string, handler: (params: unknown) => void): vscode.Disposable {
    return this.client.onNotification(method, handler);
  }

  /** Calls `handler` with what is told of the work that was given this token. */
  onProgress(token: string, handler: (value: unknown) => void): vscode.Disposable {
    return this.client.onProgress(WorkDoneProgress.type, token, handler);
  }
}

/** The client shows messages with neither a fix nor a button; here it only logs them. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** The client would show a message as it comes. */
function show({ type, message }: ShowMessageParams): void {
  const text = withoutLinks(message);
  if (type === MessageType.Error) {
    void vscode.window.showErrorMessage(text);
  } else if (type === MessageType.Warning) {
    void vscode.window.showWarningMessage(text);
  } else {
    void vscode.window.showInformationMessage(text);
  }
}

const askingFeature: StaticFeature = {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...capabilities.experimental, specedit: { askInstruction: true } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

/** Files, new documents and whatever kind of file system the workspace is on; no output, no old versions, no input. */
function documentSelector(): { scheme: string }[] {
  const open = vscode.workspace.workspaceFolders?.map((folder) => folder.uri.scheme) ?? [];
  return [...new Set(['file', 'untitled', 'vscode-vfs', ...open])].map((scheme) => ({ scheme }));
}

function settings(scope?: vscode.Uri): (key: string) => unknown {
  const section = vscode.workspace.getConfiguration('specedit', scope);
  return (key) => section.get(key);
}

function middleware(
  takenOver: ReadonlyMap<string, (argument: unknown) => unknown>,
  reports: CompletionReports,
): Middleware {
  return {
    executeCommand: (command, args, next) => {
      const handler = takenOver.get(command);
      return handler === undefined ? next(command, args) : handler(args[0]);
    },
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      const given = await next(document, position, context, token);
      if (given && !token.isCancellationRequested) {
        reports.given(document, position, Array.isArray(given) ? given : given.items);
      }
      return given;
    },
    workspace: {
      // The whole section would hold what is no option of the server's, too.
      configuration: (params) =>
        params.items.map(({ section, scopeUri }) =>
          section === 'specedit'
            ? nested(FOLDER_OPTIONS, settings(scopeUri ? vscode.Uri.parse(scopeUri) : undefined))
            : null,
        ),
    },
  };
}
