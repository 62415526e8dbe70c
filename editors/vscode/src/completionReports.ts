import * as vscode from 'vscode';
import { takenLength } from './taken';

interface Shown {
  readonly uri: string;
  readonly item: vscode.InlineCompletionItem;
  readonly text: string;
  /** Where the item's text begins. */
  readonly offset: number;
  /** How much of it stands in the document. */
  length: number;
}

/**
 * What the server is told of completions, for its statistics: that one is shown, and how much of it was taken.
 *
 * VS Code tells an extension neither. An item that was given in time is taken for shown, and a change that inserts what
 * comes next in it, as no key does, for accepting a word or a line. Accepting all of it runs the item's own command.
 */
export class CompletionReports implements vscode.Disposable {
  private shown: Shown | null = null;
  private readonly listening: vscode.Disposable;

  /** @param notify sends a notification to the server */
  constructor(private readonly notify: (method: string, params: object) => void) {
    this.listening = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) =>
        this.changed(document, contentChanges),
      ),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.focused(editor)),
    );
  }

  /** Tells which document is looked at. */
  focused(editor: vscode.TextEditor | undefined = vscode.window.activeTextEditor): void {
    if (editor !== undefined) {
      this.notify('textDocument/didFocus', { textDocument: { uri: editor.document.uri.toString() } });
    }
  }

  /** The server gave these for a position; the first one is shown. */
  given(document: vscode.TextDocument, position: vscode.Position, items: readonly vscode.InlineCompletionItem[]): void {
    const item = items[0];
    const text = typeof item?.insertText === 'string' ? item.insertText : item?.insertText.value;
    if (item === undefined || text === undefined) {
      return;
    }
    const offset = document.offsetAt(item.range?.start ?? position);
    const length = document.offsetAt(position) - offset;
    this.shown = { uri: document.uri.toString(), item, text, offset, length };
    this.notify('textDocument/didShowCompletion', { item: asSent(item) });
  }

  private changed(document: vscode.TextDocument, changes: readonly vscode.TextDocumentContentChangeEvent[]): void {
    const { shown } = this;
    const change = changes[0];
    if (shown === null || change === undefined || document.uri.toString() !== shown.uri) {
      return;
    }
    const taken = changes.length === 1 ? takenLength(shown, change) : null;
    if (taken === null) {
      this.shown = null;
      return;
    }
    const isTyped = taken - shown.length === 1;
    shown.length = taken;
    if (!isTyped && taken < shown.text.length) {
      this.notify('textDocument/didPartiallyAcceptCompletion', { item: asSent(shown.item), acceptedLength: taken });
    }
  }

  dispose(): void {
    this.listening.dispose();
  }
}

function asSent({ insertText, command }: vscode.InlineCompletionItem): object {
  return { insertText: typeof insertText === 'string' ? insertText : insertText.value, command };
}
