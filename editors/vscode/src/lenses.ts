import * as vscode from 'vscode';
import { linesOf } from './proposal';
import type { OpenHunk, Session } from './session';
import type { Sessions } from './sessions';

/** Puts what can be done above each change, and above the part that is rewritten. */
export class Lenses implements vscode.CodeLensProvider {
  readonly onDidChangeCodeLenses: vscode.Event<void>;

  /** For what `sessions` propose. */
  constructor(private readonly sessions: Sessions) {
    const changed = new vscode.EventEmitter<void>();
    sessions.onDidChange(() => changed.fire());
    this.onDidChangeCodeLenses = changed.event;
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.sessions.in(document).flatMap((session) => [...ofSession(session, document), ...ofHunks(session)]);
  }
}

function ofSession(session: Session, document: vscode.TextDocument): vscode.CodeLens[] {
  const line = Math.min(session.region.first, document.lineCount - 1);
  const argument = { session: session.id };
  const told = count(session.undecided);
  if (!session.outcome) {
    const percent = session.percent > 0 ? ` ${session.percent}%` : '';
    const soFar = session.undecided > 0 ? `, ${told} so far` : '';
    return [
      lens(line, `$(loading~spin) Rewriting ${session.label}${percent}${soFar}`, 'specedit.showDiff', argument),
      lens(line, 'Cancel', 'specedit.cancelChanges', argument),
    ];
  }
  const one = session.undecided === 1;
  return [
    lens(line, `$(sparkle) ${told} in ${session.label}`, 'specedit.nextChange', argument),
    ...(one
      ? []
      : [
          lens(line, 'Accept All', 'specedit.acceptAllChanges', argument),
          lens(line, 'Reject All', 'specedit.rejectAllChanges', argument),
        ]),
    lens(line, 'Regenerate', 'specedit.regenerateChanges', argument),
    lens(line, 'Show Diff', 'specedit.showDiff', argument),
  ];
}

function ofHunks(session: Session): vscode.CodeLens[] {
  if (!session.outcome) {
    return [];
  }
  return session.open.flatMap((hunk) => {
    const { line } = hunk.range.start;
    const argument = { session: session.id, id: hunk.id };
    return [
      lens(line, `$(check) Accept ${sizeOf(hunk)}`, 'specedit.acceptChange', argument),
      lens(line, '$(x) Reject', 'specedit.rejectChange', argument),
    ];
  });
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
