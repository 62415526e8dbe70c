import * as vscode from 'vscode';
import { type Replacement, replaceAll, toRange } from './apply';
import type { Server } from './client';
import { shown } from './ghost';
import { splitLines, withPlainEnds } from './lines';
import { GHOST } from './preview';
import { type NextEdit, readNextEdit } from './protocol';

/** The next edit: shown where it would be made, and made on demand. Everything ends with what is returned. */
export function register(_context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  return new NextEdits(server);
}

interface Proposed extends Replacement {
  readonly document: vscode.TextDocument;
  readonly version: number;
}

class NextEdits implements vscode.Disposable {
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.infoForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  private readonly added = vscode.window.createTextEditorDecorationType({ after: GHOST });
  private readonly status = vscode.window.createStatusBarItem('specedit.nextEdit', vscode.StatusBarAlignment.Left);
  private readonly registrations: vscode.Disposable[];
  private proposed: Proposed | undefined;

  constructor(private readonly server: Server) {
    this.status.name = 'SpecEdit Next Edit';
    this.status.command = 'specedit.goToNextEdit';
    this.registrations = [
      this.removed,
      this.added,
      this.status,
      server.onNotification('specedit/nextEdit', (params) => this.take(readNextEdit(params))),
      server.onDidStop(() => this.dismiss()),
      vscode.commands.registerCommand('specedit.goToNextEdit', () => this.go()),
      vscode.commands.registerCommand('specedit.dismissNextEdit', () => this.dismiss()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        // The server proposes it anew where it still holds.
        if (contentChanges.length > 0 && document === this.proposed?.document) {
          this.dismiss();
        }
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (document === this.proposed?.document) {
          this.dismiss();
        }
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }

  /** Go to the next edit; from there, make it. */
  private async go(): Promise<void> {
    try {
      await (this.proposed ? this.goOrMake(this.proposed) : this.ask());
    } catch (error) {
      void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
    }
  }

  private async goOrMake(proposed: Proposed): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { document, range } = proposed;
    const place = toRange(range);
    const isThere = editor?.document === document && isAt(editor.selection.active.line, place);
    if (!isThere) {
      const shownIn = editor?.document === document ? editor : await vscode.window.showTextDocument(document);
      shownIn.selection = new vscode.Selection(place.start, place.start);
      shownIn.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      return;
    }
    this.dismiss();
    if (!(await replaceAll(document, [proposed]))) {
      throw new Error('The text has changed where the next edit belongs, so nothing was changed. Ask for it again.');
    }
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) {
      throw new Error('No file is open in which there could be a next edit. Open one.');
    }
    const { line, character } = editor.selection.active;
    const given = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: 'Looking for the next edit' },
      () =>
        this.server.command<unknown>('specedit.nextEdit', {
          textDocument: { uri: editor.document.uri.toString() },
          position: { line, character },
        }),
    );
    if (given !== null && given !== undefined) {
      this.take(readNextEdit(given));
    }
    if (this.proposed) {
      await this.goOrMake(this.proposed);
    } else {
      vscode.window.setStatusBarMessage('$(info) SpecEdit has no next edit to propose', 4000);
    }
  }

  private take({ uri, version, range, newText }: NextEdit): void {
    const name = vscode.Uri.parse(uri).toString();
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === name);
    if (!range) {
      if (document && document === this.proposed?.document) {
        this.dismiss();
      }
    } else if (document?.version === version) {
      const oldText = withPlainEnds(document.getText(toRange(range)));
      this.proposed = { document, version, range, oldText, newText };
      this.show();
    }
  }

  private dismiss(): void {
    this.proposed = undefined;
    this.show();
  }

  private show(): void {
    const { proposed } = this;
    for (const editor of vscode.window.visibleTextEditors) {
      const here = proposed?.document === editor.document ? [proposed] : [];
      editor.setDecorations(
        this.removed,
        here.filter(({ oldText }) => oldText).map(({ range }) => toRange(range)),
      );
      editor.setDecorations(this.added, here.map(ghostOf));
    }
    const isHere = proposed !== undefined && vscode.window.activeTextEditor?.document === proposed.document;
    void vscode.commands.executeCommand('setContext', 'specedit.hasNextEdit', isHere);
    if (proposed && isHere) {
      this.status.text = `$(arrow-right) Next edit: line ${proposed.range.start.line + 1}`;
      this.status.tooltip =
        'SpecEdit proposes to make your last change here too. Click to go there, and again to make it.';
      this.status.show();
    } else {
      this.status.hide();
    }
  }
}

/** Whether a line is one of those that an edit changes. */
function isAt(line: number, { start, end }: vscode.Range): boolean {
  return line >= start.line && (line <= start.line || line < end.line || (line === end.line && end.character > 0));
}

/** The line that an edit makes of the one where it begins, after that. */
function ghostOf({ document, range, newText }: Proposed): vscode.DecorationOptions {
  const first = document.lineAt(range.start.line);
  const last = document.lineAt(Math.min(range.end.line, document.lineCount - 1));
  const whole = first.text.slice(0, range.start.character) + newText + last.text.slice(range.end.character);
  return {
    range: new vscode.Range(first.range.end, first.range.end),
    renderOptions: { after: { contentText: shown('\u2192', splitLines(whole)) } },
  };
}
