/**
 * What the server says, and a check of it where it comes in: behind this file nothing has to be doubted any more.
 *
 * A message that is not what it should be is a {@link ProtocolError}; a newer server may say more than is known here.
 */

/** A place in a document: lines and UTF-16 units, both from 0, as VS Code counts. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** From one place up to another. */
export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** `specedit/hunk`: a change that is settled; `range` is in the text of `version`. */
export interface Hunk {
  readonly session: string;
  readonly id: number;
  readonly uri: string;
  readonly version: number;
  readonly range: Range;
  readonly oldText: string;
  readonly newText: string;
}

/** `specedit/hunkRemoved`: that change is none after all. */
export interface HunkRemoved {
  readonly session: string;
  readonly id: number;
}

/** `specedit/rebased`: from now on ranges are in `version`; those sent before are so many lines further down. */
export interface Rebased {
  readonly session: string;
  readonly uri: string;
  readonly version: number;
  readonly lines: number;
}

/** How a rewrite can end. */
export type Outcome = 'ready' | 'refused' | 'cancelled' | 'stale';

/** `specedit/rewriteEnd`: the end of the model's work. */
export interface RewriteEnd {
  readonly session: string;
  readonly outcome: Outcome;
  readonly reason: string;
  readonly fix: string;
}

/** What `specedit.rewrite` and `specedit.regenerate` give: the part that is rewritten, in the text of `version`. */
export interface Rewrite {
  readonly session: string;
  readonly uri: string;
  readonly version: number;
  readonly range: Range;
  readonly label: string;
}

/** The argument of a code action that rewrites; without an instruction where the user is to be asked for one. */
export interface RewriteArgument {
  readonly uri: string;
  readonly version: number | null;
  readonly range: Range;
  readonly instruction: string | null;
}

/** `specedit/nextEdit` and what the command gives; a range of null takes the proposal back. */
export interface NextEdit {
  readonly uri: string;
  readonly version: number;
  readonly range: Range | null;
  readonly newText: string;
  readonly source: string;
}

/** How the engine can be. */
export type EngineState = 'loading' | 'ready' | 'busy' | 'error';

/** `specedit/status`: how the engine is. */
export interface Status {
  readonly state: EngineState;
  readonly message: string;
  readonly percent: number | null;
  readonly fix: string;
  readonly model: string;
}

/** What became of the proposals of one kind, and what they cost. */
export interface Counters {
  readonly shown: number;
  readonly accepted: number;
  readonly rejected: number;
  readonly acceptedChars: number;
  readonly answers: number;
  readonly outputTokens: number;
  readonly forwards: number;
  readonly tokensPerForward: number | null;
  readonly seconds: number;
  readonly secondsSaved: number;
}

/** What `specedit.statistics` gives. */
export interface Statistics {
  readonly countedSeconds: number;
  readonly inline: Counters;
  readonly rewrite: Counters;
  readonly nextEdit: Counters;
  readonly total: Counters;
  readonly summary: string;
}

/** A message that is not what the protocol says; its message is for the log. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

type Reader<T> = (value: unknown, name: string) => T;

/** Reads a range, as a user's own key binding gives it. */
export const readRange = reader<Range>('range', range);

/** Reads a `specedit/hunk`. */
export const readHunk = reader<Hunk>('specedit/hunk', (value, name) =>
  object(value, name, {
    session: text,
    id: whole,
    uri: text,
    version: whole,
    range,
    oldText: text,
    newText: text,
  }),
);

/** Reads a `specedit/hunkRemoved`. */
export const readHunkRemoved = reader<HunkRemoved>('specedit/hunkRemoved', (value, name) =>
  object(value, name, { session: text, id: whole }),
);

/** Reads a `specedit/rebased`. */
export const readRebased = reader<Rebased>('specedit/rebased', (value, name) =>
  object(value, name, { session: text, uri: text, version: whole, lines: whole }),
);

/** Reads a `specedit/rewriteEnd`. */
export const readRewriteEnd = reader<RewriteEnd>('specedit/rewriteEnd', (value, name) =>
  object(value, name, {
    session: text,
    outcome: oneOf('ready', 'refused', 'cancelled', 'stale'),
    reason: absentAs('', text),
    fix: absentAs('', text),
  }),
);

/** Reads what `specedit.rewrite` and `specedit.regenerate` give. */
export const readRewrite = reader<Rewrite>('the answer to specedit.rewrite', (value, name) =>
  object(value, name, { session: text, uri: text, version: whole, range, label: text }),
);

/** Reads the argument of a code action that runs `specedit.rewrite` or `specedit.askInstruction`. */
export const readRewriteArgument = reader<RewriteArgument>('the argument of a code action', (value, name) => {
  const read = object(value, name, {
    textDocument: (inner, at) => object(inner, at, { uri: text, version: absentAs(null, whole) }),
    range,
    instruction: absentAs(null, text),
  });
  return { ...read.textDocument, range: read.range, instruction: read.instruction };
});

/** Reads a `specedit/nextEdit`, or what the command of that name gives, where that is not null. */
export const readNextEdit = reader<NextEdit>('specedit/nextEdit', (value, name) =>
  object(value, name, {
    uri: text,
    version: whole,
    range: absentAs(null, range),
    newText: absentAs('', text),
    source: absentAs('', text),
  }),
);

/** Reads a `specedit/status`. */
export const readStatus = reader<Status>('specedit/status', (value, name) =>
  object(value, name, {
    state: oneOf('loading', 'ready', 'busy', 'error'),
    message: absentAs('', text),
    percent: absentAs(null, number),
    fix: absentAs('', text),
    model: absentAs('', text),
  }),
);

/** Reads what `specedit.statistics` gives. */
export const readStatistics = reader<Statistics>('the answer to specedit.statistics', (value, name) =>
  object(value, name, {
    countedSeconds: number,
    inline: counters,
    rewrite: counters,
    nextEdit: counters,
    total: counters,
    summary: text,
  }),
);

function reader<T>(what: string, read: Reader<T>): (value: unknown) => T {
  return (value) => read(value, what);
}

function counters(value: unknown, name: string): Counters {
  return object(value, name, {
    shown: whole,
    accepted: whole,
    rejected: whole,
    acceptedChars: whole,
    answers: whole,
    outputTokens: whole,
    forwards: whole,
    tokensPerForward: absentAs(null, number),
    seconds: number,
    secondsSaved: number,
  });
}

function range(value: unknown, name: string): Range {
  const read = object(value, name, { start: position, end: position });
  const { start, end } = read;
  if (end.line < start.line || (end.line === start.line && end.character < start.character)) {
    throw new ProtocolError(`${name} ends before it begins`);
  }
  return read;
}

function position(value: unknown, name: string): Position {
  return object(value, name, { line: count, character: count });
}

/** An object with just these fields, each as its reader gives it. */
function object<T extends object>(value: unknown, name: string, fields: { [Key in keyof T]: Reader<T[Key]> }): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ProtocolError(`${name} is no object`);
  }
  const given = new Map<string, unknown>(Object.entries(value));
  const read: Partial<T> = {};
  for (const key in fields) {
    read[key] = fields[key](given.get(key), `${name}.${key}`);
  }
  return read as T;
}

function text(value: unknown, name: string): string {
  if (typeof value !== 'string') {
    throw new ProtocolError(`${name} is no text`);
  }
  return value;
}

function number(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ProtocolError(`${name} is no number`);
  }
  return value;
}

function whole(value: unknown, name: string): number {
  if (!Number.isSafeInteger(value)) {
    throw new ProtocolError(`${name} is no whole number`);
  }
  return value as number;
}

function count(value: unknown, name: string): number {
  const read = whole(value, name);
  if (read < 0) {
    throw new ProtocolError(`${name} is below 0`);
  }
  return read;
}

function oneOf<T extends string>(...values: readonly T[]): Reader<T> {
  return (value, name) => {
    const found = values.find((known) => known === value);
    if (found === undefined) {
      throw new ProtocolError(`${name} is none of ${values.join(', ')}`);
    }
    return found;
  };
}

function absentAs<T, Otherwise>(otherwise: Otherwise, read: Reader<T>): Reader<T | Otherwise> {
  return (value, name) => (value === undefined || value === null ? otherwise : read(value, name));
}
