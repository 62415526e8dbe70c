import * as vscode from 'vscode';
import { type PlacedHunk, type Proposal, proposed } from './proposal';
import type { Sessions } from './sessions';

/** The scheme of documents that show what another one becomes. */
export const SCHEME = 'specedit-preview';

/** Shows a document beside what it becomes with the changes that are proposed, in the editor's own diff. */
export class Diffs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registrations: vscode.Disposable[];
  readonly onDidChange = this.changed.event;

  /** Show what `sessions` propose, as it comes. */
  constructor(private readonly sessions: Sessions) {
    this.registrations = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      sessions.onDidChange((document) => this.changed.fire(previewUri(document.uri))),
    ];
  }

  /** What the document becomes. */
  provideTextDocumentContent(uri: vscode.Uri): string {
    const document = this.documentOf(uri);
    return document ? this.proposal(document).text : '';
  }

  /** What a document becomes. */
  private proposal(document: vscode.TextDocument): Proposal {
    return proposed(document.getText(), this.sessions.open(document));
  }

  /** The open changes in `document` and their lines, in itself or in what it becomes, as `shown` says. */
  places(shown: vscode.Uri, document: vscode.TextDocument): readonly PlacedHunk[] {
    if (shown.scheme === SCHEME) {
      return this.proposal(document).places;
    }
    return this.sessions.open(document).map((hunk) => {
      const { start, end } = hunk.range;
      return { hunk, lines: { first: start.line, end: end.character > 0 ? end.line + 1 : end.line } };
    });
  }

  /** The document of which `uri` is what it becomes, or that it names itself; undefined where it isn't open. */
  documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
    const name = uri.scheme === SCHEME ? uri.query : uri.toString();
    return vscode.workspace.textDocuments.find((document) => document.uri.toString() === name);
  }

  /** Opens the diff of a document, at its line `line`. */
  async show(document: vscode.TextDocument, line: number): Promise<void> {
    const uri = previewUri(document.uri);
    const preview = await vscode.workspace.openTextDocument(uri);
    if (preview.languageId !== document.languageId) {
      await vscode.languages.setTextDocumentLanguage(preview, document.languageId);
    }
    const name = document.uri.path.split('/').pop() ?? '';
    const at = this.proposal(document).places.find(({ hunk }) => hunk.range.end.line >= line)?.lines.first ?? 0;
    await vscode.commands.executeCommand('vscode.diff', document.uri, uri, `${name} (what SpecEdit proposes)`, {
      preview: true,
      selection: new vscode.Range(at, 0, at, 0),
    });
  }

  /** Closes the diffs of a document. */
  async close(document: vscode.Uri): Promise<void> {
    const name = previewUri(document).toString();
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter((tab) => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === name);
    if (tabs.length > 0) {
      await vscode.window.tabGroups.close(tabs);
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }
}

function previewUri(document: vscode.Uri): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: document.path, query: document.toString() });
}
