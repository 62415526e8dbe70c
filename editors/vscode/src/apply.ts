import * as vscode from 'vscode';
import { withPlainEnds } from './lines';
import type { Range } from './protocol';

/** Text that is to come in the place of other text. */
export interface Replacement {
  readonly range: Range;
  readonly oldText: string;
  readonly newText: string;
}

/**
 * Makes replacements in a document as one step to undo, all or none of them.
 *
 * Gives whether they were made: not where other text stands in the place of one, or the document was closed.
 */
export async function replaceAll(
  document: vscode.TextDocument,
  replacements: readonly Replacement[],
): Promise<boolean> {
  if (document.isClosed || !replacements.every((replacement) => fits(document, replacement))) {
    return false;
  }
  const edit = new vscode.WorkspaceEdit();
  for (const { range, newText } of replacements) {
    edit.replace(document.uri, toRange(range), newText);
  }
  // VS Code itself refuses it where the document has changed on the way.
  return vscode.workspace.applyEdit(edit);
}

/** A range as VS Code has it. */
export function toRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

function fits(document: vscode.TextDocument, { range, oldText }: Replacement): boolean {
  const place = toRange(range);
  return document.validateRange(place).isEqual(place) && withPlainEnds(document.getText(place)) === oldText;
}
