import * as vscode from 'vscode';
import { onDidChangeInterpreter } from './interpreter';
import * as nextEdit from './nextEdit';
import * as rewrites from './rewrites';
import * as serverCommands from './serverCommands';
import { RESTARTING } from './settings';
import * as statistics from './statistics';
import * as statusBar from './statusBar';
import { Supervisor } from './supervisor';

const REST_MS = 1000;

let supervisor: Supervisor | undefined;

/** Called by VS Code once it has started. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('SpecEdit', { log: true });
  const server = new Supervisor(log);
  supervisor = server;
  context.subscriptions.push(
    log,
    server,
    statusBar.register(context, server),
    statistics.register(context, server),
    serverCommands.register(server, log),
    rewrites.register(context, server),
    nextEdit.register(context, server),
    restarting(server, log),
  );
  void server.restart();
}

/** Called by VS Code before it ends; it waits for the server's end. */
export async function deactivate(): Promise<void> {
  await supervisor?.end();
}

/** Starts the server anew when something changes that it is started by. */
function restarting(server: Supervisor, log: vscode.LogOutputChannel): vscode.Disposable {
  let resting: NodeJS.Timeout | undefined;
  const restart = (why: string) => {
    // Settings change letter by letter while they are typed.
    clearTimeout(resting);
    resting = setTimeout(() => {
      log.info(`the server is started anew: ${why}`);
      void server.restart();
    }, REST_MS);
  };
  return vscode.Disposable.from(
    new vscode.Disposable(() => clearTimeout(resting)),
    vscode.workspace.onDidGrantWorkspaceTrust(() => restart('the workspace is trusted now')),
    vscode.workspace.onDidChangeConfiguration((event) => {
      const changed = RESTARTING.find((key) => event.affectsConfiguration(key));
      if (changed !== undefined) {
        restart(`${changed} has changed`);
      }
    }),
    onDidChangeInterpreter(async () => {
      if (await server.wouldStartOtherwise()) {
        restart('the Python extension has chosen another interpreter');
      }
    }),
  );
}
