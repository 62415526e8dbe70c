import { Lines } from './lines';
import type { LineSpan, OpenHunk } from './session';

/** A change, and its lines in a text: none where it only adds, or only removes. */
export interface PlacedHunk {
  readonly hunk: OpenHunk;
  readonly lines: LineSpan;
}

/** A text with changes made in it, and where they are. */
export interface Proposal {
  readonly text: string;
  readonly places: readonly PlacedHunk[];
}

/** What `text` becomes with `hunks`, which are sorted and apart from each other. */
export function proposed(text: string, hunks: readonly OpenHunk[]): Proposal {
  const places: PlacedHunk[] = [];
  let lines = Lines.of(text);
  let grown = 0;
  for (const hunk of hunks) {
    const range = {
      start: { line: hunk.range.start.line + grown, character: hunk.range.start.character },
      end: { line: hunk.range.end.line + grown, character: hunk.range.end.character },
    };
    const before = lines.count;
    lines = lines.after({ range, text: hunk.newText });
    grown += lines.count - before;
    places.push({ hunk, lines: { first: range.start.line, end: range.start.line + linesOf(hunk.newText) } });
  }
  return { text: lines.text, places };
}

/** How many lines a text of whole lines has; the last may be without an end. */
export function linesOf(text: string): number {
  return text === '' ? 0 : Lines.of(text).count - (text.endsWith('\n') ? 1 : 0);
}

/** The change at a line, else the next one below, else the first; undefined where there is none. */
export function nearest<T extends { readonly lines: LineSpan }>(items: readonly T[], line: number): T | undefined {
  return items.find(({ lines }) => line < Math.max(lines.end, lines.first + 1)) ?? items[0];
}
