import * as vscode from 'vscode';
import type { Diffs } from './diff';
import { linesOf } from './proposal';
import type { OpenHunk, Session } from './session';
import type { Sessions } from './sessions';

/** Puts what can be done above each change, and above the part that is rewritten. */
export class Lenses implements vscode.CodeLensProvider {
  readonly onDidChangeCodeLenses: vscode.Event<void>;

  /** For what `sessions` propose, in the documents and in their `diffs`. */
  constructor(
    private readonly sessions: Sessions,
    private readonly diffs: Diffs,
  ) {
    const changed = new vscode.EventEmitter<void>();
    sessions.onDidChange(() => changed.fire());
    this.onDidChangeCodeLenses = changed.event;
  }

  provideCodeLenses(shown: vscode.TextDocument): vscode.CodeLens[] {
    const document = this.diffs.documentOf(shown.uri);
    if (!document) {
      return [];
    }
    const ofSessions = this.sessions.in(document).flatMap((session) => {
      const line = Math.min(session.region.first, shown.lineCount - 1);
      return session.outcome ? toDecide(session, line) : toWaitFor(session, line);
    });
    const places = this.diffs.places(shown.uri, document).filter(({ hunk }) => hunk.session.outcome);
    return [...ofSessions, ...places.flatMap(({ hunk, lines }) => toDecideOn(hunk, lines.first))];
  }
}

function toWaitFor({ id, label, percent, undecided }: Session, line: number): vscode.CodeLens[] {
  const share = percent > 0 ? ` ${percent}%` : '';
  const soFar = undecided > 0 ? `, ${count(undecided)} so far` : '';
  return [
    lens(line, `$(loading~spin) Rewriting ${label}${share}${soFar}`, 'specedit.nextChange', { session: id }),
    lens(line, 'Cancel', 'specedit.cancelChanges', { session: id }),
  ];
}

function toDecide({ id, label, undecided, open }: Session, line: number): vscode.CodeLens[] {
  const lost = undecided - open.length;
  const isOf = lost > 0 ? `, of which ${lost} no longer ${lost === 1 ? 'fits' : 'fit'}` : '';
  const all: readonly [string, string][] = [
    ['Accept All', 'specedit.acceptAllChanges'],
    ['Reject All', 'specedit.rejectAllChanges'],
  ];
  const can: readonly [string, string][] = [
    [`$(sparkle) ${count(undecided)} in ${label}${isOf}`, 'specedit.nextChange'],
    ...(undecided > 1 || lost > 0 ? all : []),
    ['Regenerate', 'specedit.regenerateChanges'],
    ['Show Diff', 'specedit.showDiff'],
  ];
  return can.map(([title, command]) => lens(line, title, command, { session: id }));
}

function toDecideOn(hunk: OpenHunk, line: number): vscode.CodeLens[] {
  const argument = { session: hunk.session.id, id: hunk.id };
  return [
    lens(line, `Accept ${sizeOf(hunk)}`, 'specedit.acceptChange', argument),
    lens(line, 'Reject', 'specedit.rejectChange', argument),
  ];
}

/** How many lines a change adds and removes. */
export function sizeOf({ oldText, newText }: OpenHunk): string {
  const [added, removed] = [linesOf(newText), linesOf(oldText)];
  return [...(added > 0 ? [`+${added}`] : []), ...(removed > 0 ? [`\u2212${removed}`] : [])].join(' ');
}

/** How many changes, in words. */
export function count(changes: number): string {
  return `${changes} ${changes === 1 ? 'change' : 'changes'}`;
}

function lens(line: number, title: string, command: string, argument: object): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: [argument] });
}
