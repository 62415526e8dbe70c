import * as vscode from 'vscode';
import { toRange } from './apply';
import { MARGIN, shownLine } from './ghost';
import { sizeOf } from './lenses';
import { splitLines } from './lines';
import { linesOf } from './proposal';
import type { OpenHunk, Session } from './session';
import type { Sessions } from './sessions';

/** Shows in the editors of a document what is proposed there. No character of it is touched. */
export class Preview implements vscode.Disposable {
  private readonly region = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('editor.hoverHighlightBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.infoForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('diffEditor.removedLineBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.modifiedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  private readonly removedPart = vscode.window.createTextEditorDecorationType({
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
  private readonly ghost = vscode.window.createTextEditorDecorationType({
    after: { margin: MARGIN, color: new vscode.ThemeColor('editorGhostText.foreground'), fontStyle: 'italic' },
  });
  private readonly registrations: vscode.Disposable[];

  /** Show what `sessions` propose, as it comes. */
  constructor(private readonly sessions: Sessions) {
    this.registrations = [
      this.region,
      this.removed,
      this.removedPart,
      this.added,
      this.ghost,
      sessions.onDidChange((document) => this.show(document)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        for (const { document } of editors) {
          this.show(document);
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }

  private show(document: vscode.TextDocument): void {
    for (const editor of vscode.window.visibleTextEditors.filter((one) => one.document === document)) {
      this.draw(editor, this.sessions.in(document));
    }
  }

  private draw(editor: vscode.TextEditor, sessions: readonly Session[]): void {
    const { document } = editor;
    const hunks = sessions.flatMap((session) => session.open);
    const writing = sessions.filter((session) => !session.outcome).map((session) => regionOf(session, document));
    editor.setDecorations(this.region, writing);
    editor.setDecorations(
      this.removed,
      hunks
        .filter((hunk) => hunk.oldText)
        .map((hunk) => ({ range: linesIn(hunk), hoverMessage: hover(hunk, document) })),
    );
    editor.setDecorations(
      this.removedPart,
      hunks.flatMap((hunk) => partOf(hunk) ?? []),
    );
    editor.setDecorations(
      this.added,
      hunks
        .filter((hunk) => !hunk.oldText)
        .map((hunk) => ({ range: toRange(hunk.range), hoverMessage: hover(hunk, document) })),
    );
    editor.setDecorations(
      this.ghost,
      hunks.flatMap((hunk) => ghostOf(hunk, document)),
    );
  }
}

function regionOf({ region }: Session, document: vscode.TextDocument): vscode.Range {
  const last = Math.max(region.first, region.end - 1);
  return document.validateRange(new vscode.Range(region.first, 0, last, 0));
}

/** The lines that a change removes. */
function linesIn({ range, oldText }: OpenHunk): vscode.Range {
  return new vscode.Range(range.start.line, 0, range.start.line + Math.max(1, linesOf(oldText)) - 1, 0);
}

/** Of a single line that is replaced, what becomes another. */
function partOf({ range, oldText, newText }: OpenHunk): vscode.Range | undefined {
  if (linesOf(oldText) !== 1 || linesOf(newText) !== 1) {
    return undefined;
  }
  const [old = '', next = ''] = [splitLines(oldText)[0], splitLines(newText)[0]];
  const most = Math.min(old.length, next.length);
  let before = 0;
  while (before < most && old[before] === next[before]) {
    before += 1;
  }
  let after = 0;
  while (after < most - before && old.at(-1 - after) === next.at(-1 - after)) {
    after += 1;
  }
  const { line } = range.start;
  return before < old.length - after ? new vscode.Range(line, before, line, old.length - after) : undefined;
}

/** The new lines of a change, as far as a line has room for them. */
function ghostOf(hunk: OpenHunk, document: vscode.TextDocument): vscode.DecorationOptions[] {
  const { newText, oldText, range } = hunk;
  if (!newText) {
    return [];
  }
  const lines = splitLines(newText).slice(0, linesOf(newText));
  const line = oldText ? range.start.line : Math.max(0, range.start.line - 1);
  const end = document.lineAt(Math.min(line, document.lineCount - 1)).range.end;
  return [
    {
      range: new vscode.Range(end, end),
      renderOptions: { after: { contentText: shownLine(oldText ? '\u2192' : '\u21b5 +', lines) } },
    },
  ];
}

function hover(hunk: OpenHunk, document: vscode.TextDocument): vscode.MarkdownString {
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
  text.baseUri = document.uri;
  return text;
}
