import type { Position, Range } from './protocol';

/** A change of a text as the editor tells it: what stood in `range` is `text` now. */
export interface Change {
  readonly range: Range;
  readonly text: string;
}

/** The lines of `text` without their ends, whichever those are: "a\r\nb\n" has ["a", "b", ""]. */
export function splitLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

/** `text` with the line ends of a text that is compared. */
export function withPlainEnds(text: string): string {
  return splitLines(text).join('\n');
}

/** Whether `one` is before `other`, or the same. */
export function isUpTo(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character <= other.character);
}

/** A text as its lines. VS Code ends all lines of a document alike, so that ends say nothing. Unchanging. */
export class Lines {
  private constructor(private readonly lines: readonly string[]) {}

  /** The lines of `text`. */
  static of(text: string): Lines {
    return new Lines(splitLines(text));
  }

  /** How many there are: one more than line ends. */
  get count(): number {
    return this.lines.length;
  }

  /** The whole text. */
  get text(): string {
    return this.lines.join('\n');
  }

  /** One line, from 0; empty where there is none. */
  at(line: number): string {
    return this.lines[line] ?? '';
  }

  /** Whether `parts`, the lines of a text, begin a line here and end as it does: with a line, or with its end. */
  hold(parts: readonly string[], line: number): boolean {
    const last = line + parts.length - 1;
    return (
      line >= 0 &&
      last < this.count &&
      parts.every((part, index) => (index === parts.length - 1 && part === '') || this.lines[line + index] === part)
    );
  }

  /** What stands in `range`. */
  within({ start, end }: Range): string {
    if (start.line === end.line) {
      return this.at(start.line).slice(start.character, end.character);
    }
    const between = this.lines.slice(start.line + 1, end.line);
    return [this.at(start.line).slice(start.character), ...between, this.at(end.line).slice(0, end.character)].join(
      '\n',
    );
  }

  /** What `change` really does: without the whole lines at its beginning and end that it leaves as they are. */
  least({ range, text }: Change): Change {
    const old = splitLines(this.within(range));
    const parts = splitLines(text);
    const most = Math.min(old.length, parts.length) - 1;
    let before = 0;
    while (before < most && old[before] === parts[before]) {
      before += 1;
    }
    let after = 0;
    while (after < most - before && old.at(-1 - after) === parts.at(-1 - after)) {
      after += 1;
    }
    const start = before > 0 ? { line: range.start.line + before, character: 0 } : range.start;
    const endLine = range.end.line - after;
    const inEndLine = (old.at(-1 - after) ?? '').length + (endLine === start.line ? start.character : 0);
    const end = after > 0 ? { line: endLine, character: inEndLine } : range.end;
    return { range: { start, end }, text: parts.slice(before, parts.length - after).join('\n') };
  }

  /** The lines after `change`. */
  after({ range: { start, end }, text }: Change): Lines {
    const parts = splitLines(this.at(start.line).slice(0, start.character) + text);
    parts.push((parts.pop() ?? '') + this.at(end.line).slice(end.character));
    return new Lines([...this.lines.slice(0, start.line), ...parts, ...this.lines.slice(end.line + 1)]);
  }
}

/** The range of the text whose lines are `parts`, where it begins `line`. */
export function rangeOf(parts: readonly string[], line: number): Range {
  const end = { line: line + parts.length - 1, character: parts.at(-1)?.length ?? 0 };
  return { start: { line, character: 0 }, end };
}
