import { type Change, isUpTo, Lines, rangeOf, splitLines, withPlainEnds } from './lines';
import type { Hunk, Outcome, Position, Range, Rebased, Rewrite } from './protocol';

/** A change of a rewrite that is not decided on, where it is in the text as it is now. */
export interface OpenHunk {
  readonly session: Session;
  readonly id: number;
  /** The part that it replaces: whole lines. */
  readonly range: Range;
  readonly oldText: string;
  readonly newText: string;
}

/** Lines of a document: `first` up to before `end`. */
export interface LineSpan {
  readonly first: number;
  readonly end: number;
}

interface Step {
  /** The version that is changed. */
  readonly from: number;
  /** As it was told. */
  readonly told: Change;
  /** What it really does. */
  readonly change: Change;
  readonly before: Lines;
  readonly after: Lines;
}

/** The line in which a text begins, and the one in which it ends: of whole lines, the line after them. */
interface Place {
  readonly first: number;
  readonly last: number;
}

interface Tracked {
  readonly id: number;
  readonly old: readonly string[];
  readonly new: readonly string[];
  /** Where it is; undefined where that is gone. */
  place: Place | undefined;
  verdict: 'open' | 'accepted' | 'rejected';
}

/**
 * One rewrite: what the server told of it, and where that is while the document changes.
 *
 * It is made with the text that is sent, before the server knows of it, and is told of every change of the document from
 * then on. So what the server tells of an earlier text finds its place through the changes that came after.
 */
export class Session {
  /** By which the server knows it; empty until it has answered. */
  id = '';
  /** How the part that is rewritten is called. */
  label = '';
  /** How the model's work ended; undefined while it writes. */
  outcome: Outcome | undefined;
  /** How much of the answer there is. */
  percent = 0;

  /** Whether the document was changed while the model wrote. */
  isEdited = false;

  private lines: Lines;
  private version: number;
  private steps: Step[] = [];
  private part: LineSpan = { first: 0, end: 0 };
  private readonly hunks = new Map<number, Tracked>();

  /**
   * @param instruction - what is to be done.
   * @param version - of the text that is sent.
   * @param text - that text.
   */
  constructor(
    readonly instruction: string,
    version: number,
    text: string,
  ) {
    this.version = version;
    this.lines = Lines.of(text);
  }

  /** The server has begun. */
  begin({ session, label, version, range }: Rewrite): void {
    this.id = session;
    this.label = label;
    const ends = range.end.character > 0 || range.end.line === range.start.line ? 1 : 0;
    this.part = this.since(version).reduce(followedSpan, { first: range.start.line, end: range.end.line + ends });
  }

  /** The document is changed: it has `version` now; each change is in the text that the one before left. */
  follow(version: number, changes: readonly Change[]): void {
    for (const told of changes) {
      const change = this.lines.least(told);
      const step = { from: this.version, told, change, before: this.lines, after: this.lines.after(change) };
      this.lines = step.after;
      this.part = followedSpan(this.part, step);
      for (const hunk of this.hunks.values()) {
        follow(hunk, step);
      }
      if (!this.outcome) {
        this.isEdited = true;
        this.steps.push(step);
      }
    }
    this.version = version;
  }

  /** A change is settled, or another one now. */
  place(told: Hunk): void {
    const { line, character } = told.range.start;
    const old = splitLines(told.oldText);
    // Within a line is an addition after the last one, if that has no end.
    const place = placeOf(old, character > 0 ? line + 1 : line);
    const hunk: Tracked = { id: told.id, old, new: splitLines(told.newText), place, verdict: 'open' };
    for (const step of this.since(told.version)) {
      follow(hunk, step);
    }
    this.hunks.set(told.id, hunk);
  }

  /** A change that was told is none. */
  remove(id: number): void {
    this.hunks.delete(id);
  }

  /** The server knows the text of this version: nothing more comes for those before. */
  rebase({ version }: Rebased): void {
    this.steps = this.steps.filter((step) => step.from >= version);
  }

  /** The model's work has ended. */
  end(outcome: Outcome): void {
    this.outcome = outcome;
    this.steps = [];
    if (outcome !== 'ready') {
      this.hunks.clear();
    }
  }

  /** The lines of the part that is rewritten. */
  get region(): LineSpan {
    return this.part;
  }

  /** The changes that are neither accepted nor rejected. */
  get undecidedIds(): number[] {
    return [...this.hunks.values()].filter((hunk) => hunk.verdict === 'open').map((hunk) => hunk.id);
  }

  /** How many these are. */
  get undecided(): number {
    return this.undecidedIds.length;
  }

  /** The open changes whose lines are still what they were made for, from the top. */
  get open(): OpenHunk[] {
    return this.undecidedIds
      .flatMap((id) => this.hunk(id) ?? [])
      .sort((one, other) => one.range.start.line - other.range.start.line);
  }

  /** One open change where it is; undefined where its lines are others now, or it is not open. */
  hunk(id: number): OpenHunk | undefined {
    const hunk = this.hunks.get(id);
    return hunk?.verdict === 'open' ? this.standing(hunk) : undefined;
  }

  /** What became of changes. */
  decide(ids: Iterable<number>, verdict: 'accepted' | 'rejected'): void {
    for (const id of ids) {
      const hunk = this.hunks.get(id);
      if (hunk) {
        hunk.verdict = verdict;
      }
    }
  }

  /** The steps that led on from the text of `version`. */
  private since(version: number): readonly Step[] {
    return this.steps.filter((step) => step.from >= version);
  }

  private standing(hunk: Tracked): OpenHunk | undefined {
    const { place } = hunk;
    if (!place || !this.lines.hold(hunk.old, place.first)) {
      return undefined;
    }
    const [oldText, newText] = [hunk.old.join('\n'), hunk.new.join('\n')];
    return { session: this, id: hunk.id, range: rangeOf(hunk.old, place.first), oldText, newText };
  }
}

/** Follow a change with what stands in the text: what is to be replaced, or what came in its place. */
function follow(hunk: Tracked, step: Step): void {
  if (!hunk.place) {
    return;
  }
  const [here, other] = hunk.verdict === 'accepted' ? [hunk.new, hunk.old] : [hunk.old, hunk.new];
  if (hunk.verdict !== 'rejected' && exchanges(step, hunk.place.first, here, other)) {
    // Accepted, by whom ever, or undone.
    hunk.verdict = hunk.verdict === 'open' ? 'accepted' : 'open';
    hunk.place = placeOf(other, hunk.place.first);
  } else {
    hunk.place = followed(hunk.place, here, step);
  }
}

/** Whether a change makes just `after` of `before` at the beginning of `line`. */
function exchanges({ told, before: text }: Step, line: number, before: readonly string[], after: readonly string[]) {
  const { start } = told.range;
  return (
    start.line === line &&
    start.character === 0 &&
    withPlainEnds(told.text) === after.join('\n') &&
    text.within(told.range) === before.join('\n')
  );
}

/**
 * Where the text with the lines `parts` is after a change, if it was at `place` before.
 *
 * Where other text stands there, the place grows to all that was changed with it: from there the text may come back.
 */
function followed(place: Place, parts: readonly string[], step: Step): Place | undefined {
  const { change, before, after } = step;
  const { start, end } = change.range;
  const { first, last } = place;
  const grown = grownBy(change);
  const isEmpty = parts.length === 1 && parts[0] === '';
  const stood = before.hold(parts, first);
  if (end.line < first || (stood && isBefore(change, { line: first, character: 0 }))) {
    return { first: first + grown, last: last + grown };
  }
  if (start.line > last || (stood && isUpTo(rangeOf(parts, first).end, start))) {
    return place;
  }
  if (isEmpty) {
    return undefined;
  }
  // Replaced as part of more, but by the same; or back.
  const kept = stood ? [first, first + grown].find((line) => after.hold(parts, line)) : cameBack(parts, step);
  if (kept !== undefined) {
    return placeOf(parts, kept);
  }
  return { first: Math.min(first, start.line), last: Math.max(last, end.line) + grown };
}

function placeOf(parts: readonly string[], line: number): Place {
  return { first: line, last: line + parts.length - 1 };
}

/** The one line from which the text with the lines `parts` stands where a change brought some of it. */
function cameBack(parts: readonly string[], { change, after }: Step): number | undefined {
  const first = change.range.start.line;
  const candidates: number[] = [];
  for (let line = first - parts.length + 1; line < first + splitLines(change.text).length; line += 1) {
    if (after.hold(parts, line)) {
      candidates.push(line);
    }
  }
  return candidates.length === 1 ? candidates[0] : undefined;
}

function followedSpan({ first, end }: LineSpan, { change }: Step): LineSpan {
  const { range } = change;
  const grown = grownBy(change);
  if (isBefore(change, { line: first, character: 0 })) {
    return { first: first + grown, end: end + grown };
  }
  if (range.start.line >= end) {
    return { first, end };
  }
  const newFirst = Math.min(first, range.start.line);
  return { first: newFirst, end: Math.max(newFirst, end + grown) };
}

/** Whether a change is before the line that begins at `place`, which still begins a line after it. */
function isBefore({ range, text }: Change, place: Position): boolean {
  const beginsLine = text === '' ? range.start.character === 0 : /[\r\n]$/.test(text);
  return range.end.line < place.line || (isUpTo(range.end, place) && beginsLine);
}

/** How many lines a change adds. */
function grownBy({ range, text }: Change): number {
  return splitLines(text).length - 1 - (range.end.line - range.start.line);
}
