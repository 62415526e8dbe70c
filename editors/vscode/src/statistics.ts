import * as vscode from 'vscode';
import type { Server } from './client';
import { readStatistics } from './protocol';
import { report } from './report';

const PAGE = vscode.Uri.parse('specedit-statistics:Statistics.md');

/** The page of statistics, which is read only and made anew each time it is asked for. */
export function register(_context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const changed = new vscode.EventEmitter<vscode.Uri>();
  let text = '';

  async function show(): Promise<void> {
    text = report(readStatistics(await server.command('specedit.statistics')));
    changed.fire(PAGE);
    try {
      await vscode.commands.executeCommand('markdown.showPreview', PAGE);
    } catch {
      // Whoever has turned VS Code's own Markdown off sees the text.
      await vscode.window.showTextDocument(PAGE, { preview: true });
    }
  }

  return vscode.Disposable.from(
    changed,
    vscode.workspace.registerTextDocumentContentProvider(PAGE.scheme, {
      onDidChange: changed.event,
      provideTextDocumentContent: () => text,
    }),
    vscode.commands.registerCommand('specedit.showStatistics', show),
  );
}
