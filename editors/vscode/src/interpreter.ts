import * as vscode from 'vscode';

const EXTENSION = 'ms-python.python';
const SECONDS = 10;

/** The part that is needed of what the Python extension exports. */
interface Environments {
  getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
  resolveEnvironment(
    environment: unknown,
  ): Thenable<{ readonly executable: { readonly uri?: vscode.Uri | undefined } } | undefined>;
  readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
}

/** The interpreter that the Python extension has chosen for the first folder; null without the extension. */
export async function activeInterpreter(): Promise<string | null> {
  const environments = await exported();
  if (environments === null) {
    return null;
  }
  const chosen = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
  try {
    const resolved = await environments.resolveEnvironment(chosen);
    return resolved?.executable.uri?.fsPath ?? null;
  } catch {
    return null;
  }
}

/** Calls `handler` whenever another interpreter is chosen. */
export function onDidChangeInterpreter(handler: () => void): vscode.Disposable {
  let listening: vscode.Disposable | undefined;
  let isDisposed = false;
  const listen = async () => {
    const environments = await exported();
    if (environments !== null && !isDisposed && listening === undefined) {
      listening = environments.onDidChangeActiveEnvironmentPath(handler);
    }
  };
  void listen();
  // It may be installed later.
  const installing = vscode.extensions.onDidChange(() => void listen());
  return new vscode.Disposable(() => {
    isDisposed = true;
    installing.dispose();
    listening?.dispose();
  });
}

async function exported(): Promise<Environments | null> {
  const extension = vscode.extensions.getExtension<{ environments?: Environments } | undefined>(EXTENSION);
  if (extension === undefined) {
    return null;
  }
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), SECONDS * 1000);
  });
  try {
    const exports = await Promise.race([extension.activate(), late]);
    return exports?.environments ?? null;
  } catch {
    return null;
  }
}
