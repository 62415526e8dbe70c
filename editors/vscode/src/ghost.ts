import { splitLines } from './lines';
import { linesOf } from './proposal';

const MOST_CHARS = 160;
const WORD = /[\p{L}\p{N}\p{M}\p{Cs}_]/u;

/** New text that is shown after a line, and how it is to be understood there. */
export interface Ghost {
  readonly line: number;
  readonly text: string;
}

/** A part of a line: `first` up to before `end`, in UTF-16 units. */
export interface Part {
  readonly line: number;
  readonly first: number;
  readonly end: number;
}

interface Replaced {
  readonly range: { readonly start: { readonly line: number } };
  readonly oldText: string;
  readonly newText: string;
}

/** Whether ghosts can show all of the new lines: there are not more of them than old ones, or it is one. */
export function fitsGhosts({ oldText, newText }: Replaced): boolean {
  return linesOf(newText) <= Math.max(1, linesOf(oldText));
}

/** The new lines, each after the old one in whose place it comes; what has no such place is counted after the last. */
export function ghosts({ range, oldText, newText }: Replaced): Ghost[] {
  const { line } = range.start;
  const [old, added] = [whole(oldText), whole(newText)];
  if (added.length === 0) {
    return [];
  }
  if (old.length === 0) {
    // After the line before it; above the first there is none.
    return [line > 0 ? { line: line - 1, text: shown('\u21b5', added) } : { line, text: shown('\u2191', added) }];
  }
  const last = Math.min(old.length, added.length) - 1;
  return old.slice(0, last + 1).flatMap((text, index) => {
    const lines = index === last ? added.slice(index) : added.slice(index, index + 1);
    return lines.length === 1 && lines[0] === text ? [] : [{ line: line + index, text: shown('\u2192', lines) }];
  });
}

/** What goes out of lines that become others, where most of each stays. */
export function replacedParts({ range, oldText, newText }: Replaced): Part[] {
  const added = whole(newText);
  return whole(oldText).flatMap((old, index) => {
    const next = added[index];
    const part = next === undefined ? undefined : replacedPart(old, next);
    return part && part.first < part.end ? [{ line: range.start.line + index, ...part }] : [];
  });
}

/** New lines as far as one line has room for them: the first of them, and how many more there are. */
export function shown(sign: string, lines: readonly string[]): string {
  const [first = '', ...rest] = lines;
  const text = first.trim();
  const cut = text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}\u2026` : text;
  const more = rest.length > 0 ? `  (and ${rest.length} more ${rest.length === 1 ? 'line' : 'lines'})` : '';
  return `${sign} ${cut}${more}`;
}

function whole(text: string): string[] {
  return splitLines(text).slice(0, linesOf(text));
}

/** What of `old` is not in `next`, in whole words. */
function replacedPart(old: string, next: string): { first: number; end: number } {
  const most = Math.min(old.length, next.length);
  let before = 0;
  while (before < most && old[before] === next[before]) {
    before += 1;
  }
  let after = 0;
  while (after < most - before && old.at(-1 - after) === next.at(-1 - after)) {
    after += 1;
  }
  const isWithin = (text: string, at: number) => WORD.test(text[at - 1] ?? '') && WORD.test(text[at] ?? '');
  while (before > 0 && (isWithin(old, before) || isWithin(next, before))) {
    before -= 1;
  }
  while (after > 0 && (isWithin(old, old.length - after) || isWithin(next, next.length - after))) {
    after -= 1;
  }
  return { first: before, end: old.length - after };
}
