import * as vscode from 'vscode';
import { withoutLinks } from './messageText';
import { whyNot } from './probe';
import { python } from './server';
import { runningServer, type Supervisor } from './supervisor';

const WALKTHROUGH = 'specedit.specedit#specedit.start';

/** Commands about the server itself: to restart it, to look into its log, and to say where it is. */
export function register(server: Supervisor, log: vscode.LogOutputChannel): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand('specedit.restart', () => server.restart()),
    vscode.commands.registerCommand('specedit.showLog', () => log.show()),
    vscode.commands.registerCommand('specedit.openWalkthrough', openWalkthrough),
    vscode.commands.registerCommand('specedit.chooseInterpreter', chooseInterpreter),
  );
}

async function openWalkthrough(step?: unknown): Promise<void> {
  const target = typeof step === 'string' ? { category: WALKTHROUGH, step } : WALKTHROUGH;
  await vscode.commands.executeCommand('workbench.action.openWalkthrough', target, false);
}

/** Asks for a Python that has specedit installed, and keeps it in the settings; the server follows those. */
async function chooseInterpreter(): Promise<void> {
  const chosen = await vscode.window.showOpenDialog({
    title: 'The Python that has specedit installed',
    openLabel: 'Choose',
    ...(process.platform === 'win32' ? { filters: { Programs: ['exe'] } } : {}),
  });
  const path = chosen?.[0]?.fsPath;
  if (path === undefined) {
    return;
  }
  const reason = await whyNot(python('your choice', path), runningServer());
  if (reason !== null) {
    const again = 'Choose Another';
    const message = withoutLinks(
      `${path} does not start specedit: ${reason}. Install specedit into it, or choose another Python.`,
    );
    if ((await vscode.window.showErrorMessage(message, again)) === again) {
      await chooseInterpreter();
    }
    return;
  }
  const settings = vscode.workspace.getConfiguration('specedit.server');
  await settings.update('interpreter', path, vscode.ConfigurationTarget.Global);
  // Which would go before it.
  if (settings.get('path')) {
    await settings.update('path', undefined, vscode.ConfigurationTarget.Global);
  }
}
