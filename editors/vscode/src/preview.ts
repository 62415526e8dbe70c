import * as vscode from 'vscode';
import { toRange } from './apply';
import { ghosts, replacedParts } from './ghost';
import { sizeOf } from './lenses';
import { splitLines } from './lines';
import { linesOf } from './proposal';
import type { OpenHunk, Session } from './session';
import type { Sessions } from './sessions';

/** How new text looks that is shown after a line. */
export const GHOST: vscode.ThemableDecorationAttachmentRenderOptions = {
  margin: '0 0 0 2ch',
  color: new vscode.ThemeColor('editor.foreground'),
  backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
};

/** Shows in the editors of a document what is proposed there. No character of it is touched. */
export class Preview implements vscode.Disposable {
  private readonly region = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('editor.hoverHighlightBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.infoForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.removedLineBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.modifiedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  private readonly replaced = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderStyle: 'solid',
    borderWidth: '1px 0 0 0',
    borderColor: new vscode.ThemeColor('editorGutter.addedBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.addedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  private readonly ghost = vscode.window.createTextEditorDecorationType({ after: GHOST });
  private readonly registrations: vscode.Disposable[];

  /** Show what `sessions` propose, as it comes. */
  constructor(private readonly sessions: Sessions) {
    this.registrations = [
      this.region,
      this.removed,
      this.replaced,
      this.added,
      this.ghost,
      sessions.onDidChange((document) => {
        for (const editor of vscode.window.visibleTextEditors.filter((one) => one.document === document)) {
          this.show(editor);
        }
      }),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        for (const editor of editors) {
          this.show(editor);
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }

  private show(editor: vscode.TextEditor): void {
    const { document } = editor;
    // A diff shows all of it in its own way.
    const sessions = isSideOfDiff(editor) ? [] : this.sessions.in(document);
    const hunks = sessions.flatMap((session) => session.open);
    const marked = (range: vscode.Range, hunk: OpenHunk) => ({ range, hoverMessage: hover(hunk) });
    editor.setDecorations(
      this.region,
      sessions.filter((session) => !session.outcome).map((session) => regionOf(session, document)),
    );
    editor.setDecorations(
      this.removed,
      hunks.flatMap((hunk) => linesIn(hunk, document).map((range) => marked(range, hunk))),
    );
    editor.setDecorations(
      this.added,
      hunks.filter(({ oldText }) => !oldText).map((hunk) => marked(toRange(hunk.range), hunk)),
    );
    editor.setDecorations(
      this.replaced,
      hunks.flatMap(replacedParts).map(({ line, first, end }) => new vscode.Range(line, first, line, end)),
    );
    editor.setDecorations(
      this.ghost,
      hunks.flatMap(ghosts).map(({ line, text }) => {
        const { end } = document.lineAt(line).range;
        return { range: new vscode.Range(end, end), renderOptions: { after: { contentText: text } } };
      }),
    );
  }
}

function isSideOfDiff({ document, viewColumn }: vscode.TextEditor): boolean {
  const name = document.uri.toString();
  return vscode.window.tabGroups.all.some(({ activeTab }) => {
    const input = activeTab?.input;
    return input instanceof vscode.TabInputTextDiff && input.original.toString() === name && viewColumn === undefined;
  });
}

function regionOf({ region }: Session, document: vscode.TextDocument): vscode.Range {
  const last = Math.max(region.first, region.end - 1);
  return document.validateRange(new vscode.Range(region.first, 0, last, 0));
}

/** The lines that a change removes, each without its indent, so that what is shown after it stands apart. */
function linesIn({ range, oldText }: OpenHunk, document: vscode.TextDocument): vscode.Range[] {
  return Array.from({ length: linesOf(oldText) }, (_, index) => {
    const line = document.lineAt(range.start.line + index);
    return line.range.with(new vscode.Position(line.lineNumber, line.firstNonWhitespaceCharacterIndex));
  });
}

function hover(hunk: OpenHunk): vscode.MarkdownString {
  const lines = (text: string, sign: string): string[] =>
    splitLines(text)
      .slice(0, linesOf(text))
      .map((line) => `${sign}${line}`);
  const text = new vscode.MarkdownString('', true);
  text.isTrusted = { enabledCommands: ['specedit.acceptChange', 'specedit.rejectChange', 'specedit.showDiff'] };
  text.appendMarkdown(`**SpecEdit** ${sizeOf(hunk)}\n`);
  text.appendCodeblock([...lines(hunk.oldText, '-'), ...lines(hunk.newText, '+')].join('\n'), 'diff');
  if (hunk.session.outcome) {
    const argument = encodeURIComponent(JSON.stringify([{ session: hunk.session.id, id: hunk.id }]));
    text.appendMarkdown(
      [
        `[$(check) Accept](command:specedit.acceptChange?${argument})`,
        `[$(x) Reject](command:specedit.rejectChange?${argument})`,
        `[$(diff) Show Diff](command:specedit.showDiff?${argument})`,
      ].join(' &nbsp; '),
    );
  }
  return text;
}
