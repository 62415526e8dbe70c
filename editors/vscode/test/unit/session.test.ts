import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, Lines } from '../../src/lines';
import type { Hunk, Position } from '../../src/protocol';
import { Session } from '../../src/session';
import { type Random, randomly } from './randomly';

const TEXT = 'zero\none\ntwo\nthree\nfour\nfive\n';

interface Told {
  readonly id?: number;
  readonly line: number;
  readonly old: string;
  readonly new: string;
  readonly version?: number;
}

function hunk({ id = 1, line, old, new: newText, version = 1 }: Told): Hunk {
  const range = { start: { line, character: 0 }, end: { line: line + old.split('\n').length - 1, character: 0 } };
  return { session: 's', id, uri: 'file:///a', version, range, oldText: old, newText };
}

/** A rewrite of lines 1 to 4 of a text, that has begun. */
function begun(text = TEXT, first = 1, end = 5): Session {
  const session = new Session('do it', 1, text);
  session.begin({
    session: 's',
    uri: 'file:///a',
    version: 1,
    label: 'lines 2-5',
    range: { start: { line: first, character: 0 }, end: { line: end, character: 0 } },
  });
  return session;
}

/** One that is ready, with these changes. */
function ready(hunks: readonly Told[], text = TEXT): Session {
  const session = begun(text);
  for (const told of hunks) {
    session.place(hunk(told));
  }
  session.end('ready');
  return session;
}

function edit(from: [number, number], to: [number, number], text: string): Change {
  const [start, end] = [from, to].map(([line, character]) => ({ line, character })) as [Position, Position];
  return { range: { start, end }, text };
}

function lines(session: Session): number[] {
  return session.open.map(({ range }) => range.start.line);
}

const TWO: Told = { id: 1, line: 2, old: 'two\n', new: 'TWO\n' };
const FOUR: Told = { id: 2, line: 4, old: 'four\n', new: 'FOUR\nfive\n' };
const ADDED: Told = { id: 3, line: 3, old: '', new: 'more\n' };

test('changes are where they were told to be, from the top', () => {
  const session = ready([FOUR, TWO]);
  assert.deepEqual(lines(session), [2, 4]);
  assert.deepEqual(session.open[1]?.range, {
    start: { line: 4, character: 0 },
    end: { line: 5, character: 0 },
  });
  assert.equal(session.open[1]?.newText, 'FOUR\nfive\n');
  assert.equal(session.undecided, 2);
});

test('a change for an earlier text is followed through what was typed since', () => {
  const session = begun();
  session.follow(2, [edit([0, 0], [0, 0], 'above\n')]);
  session.follow(3, [edit([0, 0], [0, 0], 'above\n')]);
  session.place(hunk(TWO));
  session.place(hunk({ ...FOUR, line: 5, version: 2 }));
  session.place(hunk({ ...ADDED, line: 5, version: 3 }));
  assert.deepEqual(lines(session), [4, 5, 6]);
  assert.deepEqual(session.region, { first: 3, end: 7 });
});

test('one that comes after the server knows a later text finds its place all the same', () => {
  const session = begun();
  session.follow(2, [edit([0, 0], [0, 0], 'above\n')]);
  session.follow(3, [edit([0, 0], [0, 0], 'above\n')]);
  session.rebase({ session: 's', uri: 'file:///a', version: 2, lines: 1 });
  session.place(hunk({ ...TWO, line: 3, version: 2 }));
  assert.deepEqual(lines(session), [4]);
});

test('what is typed before the answer of the server moves what it says', () => {
  const session = new Session('do it', 7, TEXT);
  session.follow(8, [edit([0, 0], [0, 0], 'above\n')]);
  session.begin({
    session: 's',
    uri: 'file:///a',
    version: 7,
    label: '',
    range: { start: { line: 1, character: 0 }, end: { line: 5, character: 0 } },
  });
  session.place(hunk({ ...TWO, version: 7 }));
  assert.deepEqual(session.region, { first: 2, end: 6 });
  assert.deepEqual(lines(session), [3]);
});

test('a change that is told again takes the place of the one before, and one that is taken back is gone', () => {
  const session = begun();
  session.place(hunk(TWO));
  session.place(hunk({ ...TWO, new: 'deux\n' }));
  session.place(hunk(FOUR));
  session.remove(2);
  assert.deepEqual(
    session.open.map(({ newText }) => newText),
    ['deux\n'],
  );
});

test('what is typed above moves changes, and what is typed below does not', () => {
  const session = ready([TWO, ADDED, FOUR]);
  session.follow(2, [edit([1, 3], [1, 3], '\nmine')]);
  assert.deepEqual(lines(session), [3, 4, 5]);
  session.follow(3, [edit([6, 0], [6, 4], '5\n6\n7')]);
  assert.deepEqual(lines(session), [3, 4, 5]);
  session.follow(4, [edit([0, 0], [2, 0], '')]);
  assert.deepEqual(lines(session), [1, 2, 3]);
});

test('several edits at once are followed from the last, as the editor tells them', () => {
  const session = ready([TWO, FOUR]);
  session.follow(2, [edit([3, 0], [3, 0], 'b\n'), edit([0, 0], [0, 0], 'a\n')]);
  assert.deepEqual(lines(session), [3, 6]);
});

test('a change whose lines are others is not open, and is again once they are back', () => {
  const session = ready([TWO, FOUR]);
  session.follow(2, [edit([2, 1], [2, 1], 'x')]);
  assert.deepEqual(lines(session), [4]);
  assert.equal(session.hunk(1), undefined);
  assert.equal(session.undecided, 2);
  session.follow(3, [edit([2, 1], [2, 2], '')]);
  assert.deepEqual(lines(session), [2, 4]);
});

test('lines that were deleted and come back by undo are found', () => {
  const session = ready([TWO, FOUR]);
  session.follow(2, [edit([1, 0], [5, 0], '')]);
  assert.deepEqual(lines(session), []);
  session.follow(3, [edit([1, 0], [1, 0], 'one\ntwo\nthree\nfour\n')]);
  assert.deepEqual(lines(session), [2, 4]);
});

test('like lines that are written elsewhere are not taken for those that went', () => {
  const session = ready([TWO]);
  session.follow(2, [edit([2, 1], [2, 1], 'x')]);
  session.follow(3, [edit([6, 0], [6, 0], 'two\n')]);
  assert.deepEqual(lines(session), []);
  session.follow(4, [edit([0, 0], [0, 0], 'two\n')]);
  assert.deepEqual(lines(session), []);
  session.follow(5, [edit([3, 1], [3, 2], '')]);
  assert.deepEqual(lines(session), [3]);
});

test('a line that is joined with another is no place for a change', () => {
  const session = ready([TWO, ADDED]);
  session.follow(2, [edit([1, 3], [2, 0], '')]);
  assert.deepEqual(lines(session), [2]);
  session.follow(3, [edit([1, 3], [1, 3], '\n')]);
  assert.deepEqual(lines(session), [2, 3]);
});

test('an addition between lines that are joined is lost', () => {
  for (const joint of ['', 'q']) {
    const session = ready([ADDED]);
    session.follow(2, [edit([2, 1], [3, 0], joint)]);
    assert.deepEqual(lines(session), []);
  }
});

test('of like lines, those are taken that stand where they stood', () => {
  const session = ready([TWO], 'zero\ntwo\ntwo\nthree\n');
  session.follow(2, [edit([2, 0], [2, 3], 'x')]);
  session.follow(3, [edit([2, 0], [2, 1], 'two')]);
  assert.deepEqual(lines(session), [2]);
});

test('an addition whose place is deleted is lost; nothing says where it belongs', () => {
  const session = ready([ADDED]);
  session.follow(2, [edit([2, 1], [4, 1], '')]);
  assert.deepEqual(lines(session), []);
  assert.equal(session.undecided, 1);
});

test('Enter at the end of the last line of a change leaves it', () => {
  const session = ready([TWO]);
  session.follow(2, [edit([2, 3], [2, 3], '\n')]);
  assert.deepEqual(lines(session), [2]);
  session.follow(3, [edit([2, 3], [2, 3], '\ntwo')]);
  assert.deepEqual(lines(session), [2]);
});

test('what is typed at the beginning of its line is not swallowed', () => {
  const session = ready([TWO]);
  session.follow(2, [edit([2, 0], [2, 0], 'x')]);
  assert.deepEqual(lines(session), []);
  session.follow(3, [edit([2, 1], [2, 1], '\n')]);
  assert.deepEqual(lines(session), [3]);
});

test('a document that is replaced by the same, with other line ends, changes nothing', () => {
  const session = ready([TWO, ADDED, FOUR]);
  session.follow(2, [edit([0, 0], [6, 0], TEXT.replaceAll('\n', '\r\n'))]);
  assert.deepEqual(lines(session), [2, 3, 4]);
});

test('a change that is made is open no more, and is again when it is undone', () => {
  const session = ready([TWO, ADDED, FOUR]);
  session.follow(2, [edit([4, 0], [5, 0], 'FOUR\nfive\n')]);
  assert.deepEqual(lines(session), [2, 3]);
  session.follow(3, [edit([0, 0], [0, 0], 'above\n')]);
  session.follow(4, [edit([5, 0], [7, 0], 'four\n')]);
  assert.deepEqual(lines(session), [3, 4, 5]);
  session.follow(5, [edit([5, 0], [6, 0], 'FOUR\r\nfive\r\n')]);
  assert.equal(session.undecided, 2);
});

test('an addition that is undone is open where it was, and so is a removal', () => {
  const session = ready([ADDED, { id: 4, line: 1, old: 'one\n', new: '' }]);
  session.follow(2, [edit([3, 0], [3, 0], 'more\n'), edit([1, 0], [2, 0], '')]);
  assert.equal(session.undecided, 0);
  session.follow(3, [edit([2, 0], [3, 0], ''), edit([1, 0], [1, 0], 'one\n')]);
  assert.deepEqual(lines(session), [1, 3]);
});

test('a change that is rejected stays so', () => {
  const session = ready([TWO, FOUR]);
  session.decide([1], 'rejected');
  session.follow(2, [edit([2, 0], [3, 0], 'TWO\n')]);
  session.follow(3, [edit([2, 0], [3, 0], 'two\n')]);
  assert.deepEqual(lines(session), [4]);
  assert.deepEqual(session.undecidedIds, [2]);
});

test('without a result there is nothing to decide on', () => {
  for (const outcome of ['refused', 'cancelled', 'stale'] as const) {
    const session = begun();
    session.place(hunk(TWO));
    session.end(outcome);
    assert.deepEqual(session.open, []);
    assert.equal(session.undecided, 0);
  }
});

test('the last line may be without an end', () => {
  const text = 'one\ntwo';
  const session = begun(text, 0, 2);
  session.place({ ...hunk({ line: 1, old: 'two', new: 'TWO' }) });
  session.end('ready');
  assert.deepEqual(session.open[0]?.range, { start: { line: 1, character: 0 }, end: { line: 1, character: 3 } });
  session.follow(2, [edit([1, 3], [1, 3], 'x')]);
  assert.deepEqual(lines(session), []);
  session.follow(3, [edit([1, 3], [1, 4], '')]);
  assert.deepEqual(lines(session), [1]);
});

test('an addition after a last line without an end is not taken for one before it', () => {
  const session = begun('one\ntwo', 0, 2);
  const end = { line: 1, character: 3 };
  session.place({ ...hunk({ line: 1, old: '', new: 'three\n' }), range: { start: end, end } });
  assert.deepEqual(lines(session), []);
});

test('lines that end in \\r\\n are the same lines', () => {
  const session = ready([{ line: 2, old: 'two\r\n', new: 'TWO\r\nand\r\n' }], TEXT.replaceAll('\n', '\r\n'));
  assert.deepEqual(lines(session), [2]);
  assert.equal(session.open[0]?.newText, 'TWO\nand\n');
});

// A character that no edit writes marks where a change belongs: it moves as characters do.
const MARKS = ['\ue001', '\ue002', '\ue003'];

interface Case {
  readonly text: string;
  readonly hunks: readonly (Told & { readonly id: number })[];
}

function drawn(random: Random): Case {
  const all = Array.from({ length: 8 + random.below(6) }, () => random.of(['', 'a', 'b', 'c']));
  const hunks: (Told & { id: number })[] = [];
  let line = random.below(3);
  while (line < all.length && hunks.length < MARKS.length) {
    const count = Math.min(random.below(3), all.length - line);
    const old = all
      .slice(line, line + count)
      .map((text) => `${text}\n`)
      .join('');
    hunks.push({ id: hunks.length + 1, line, old, new: `new ${hunks.length}\n` });
    line += count + 1 + random.below(3);
  }
  return { text: `${all.join('\n')}\n`, hunks };
}

function offset(text: string, { line, character }: Position): number {
  return text
    .split('\n')
    .slice(0, line)
    .reduce((sum, { length }) => sum + length + 1, character);
}

test('random edits between changes leave each where it belongs', () => {
  randomly(4000, (random) => {
    const { text, hunks } = drawn(random);
    const session = ready(hunks, text);
    let now = Lines.of(text);
    // Where changes begin and end, in characters: edits are drawn that stay outside of them.
    let places = hunks.map(({ line, old }) => {
      const start = offset(text, { line, character: 0 });
      return { start, end: start + old.length };
    });
    for (let version = 2; version < 8; version += 1) {
      const [first, last] = [random.place(now), random.place(now)].sort(
        (one, other) => one.line - other.line || one.character - other.character,
      ) as [Position, Position];
      const start = offset(now.text, first);
      const end = offset(now.text, last);
      const added = random.text(3) + random.of(['', '\n']);
      const isApart = places.every((place) => {
        const isAbove = end < place.start || (end === place.start && place.end > place.start && added.endsWith('\n'));
        const isBelow = start > place.end || (start === place.end && place.end > place.start);
        const keepsLine = end < place.start ? true : added.endsWith('\n');
        return (isAbove && keepsLine) || isBelow;
      });
      if (!isApart) {
        continue;
      }
      places = places.map((place) => {
        const by =
          end <= place.start && start <= place.start && !(start >= place.end) ? added.length - (end - start) : 0;
        const moved =
          start >= place.end && place.end > place.start ? 0 : end < place.start ? added.length - (end - start) : by;
        return { start: place.start + moved, end: place.end + moved };
      });
      session.follow(version, [{ range: { start: first, end: last }, text: added }]);
      now = now.after({ range: { start: first, end: last }, text: added });
      const expected = places.map((place) => now.text.slice(0, place.start).split('\n').length - 1);
      assert.deepEqual(lines(session), expected, JSON.stringify({ text, hunks, now: now.text }));
    }
  });
});

test('after any edits, only the lines that a change was made for are open to it, and all of them or none', () => {
  randomly(3000, (random) => {
    const { text, hunks } = drawn(random);
    const session = ready(hunks, text);
    let now = Lines.of(text);
    for (let version = 2; version < 10; version += 1) {
      const [start, end] = [random.place(now), random.place(now)].sort(
        (one, other) => one.line - other.line || one.character - other.character,
      ) as [Position, Position];
      const change = { range: { start, end }, text: random.text(4) };
      session.follow(version, [change]);
      now = now.after(change);
      for (const open of session.open) {
        assert.equal(now.within(open.range), open.oldText);
        assert.equal(open.range.start.character, 0);
      }
    }
  });
});

test('what is undone step by step puts every change back where its lines are', () => {
  randomly(3000, (random) => {
    const { text, hunks } = drawn(random);
    const unique = text
      .split('\n')
      .map((line, index) => (index < text.split('\n').length - 1 ? `${line}${index}` : ''));
    const own = hunks
      .filter(({ old }) => old)
      .map((told) => ({
        ...told,
        old: unique
          .slice(told.line, told.line + told.old.split('\n').length - 1)
          .join('\n')
          .concat('\n'),
      }));
    const session = ready(own, unique.join('\n'));
    const before = lines(session);
    let now = Lines.of(unique.join('\n'));
    const inverses: Change[] = [];
    let version = 1;
    const make = (change: Change): void => {
      version += 1;
      session.follow(version, [change]);
      now = now.after(change);
    };
    for (let count = 0; count < 3; count += 1) {
      const [start, end] = [random.place(now), random.place(now)].sort(
        (one, other) => one.line - other.line || one.character - other.character,
      ) as [Position, Position];
      const change = { range: { start, end }, text: random.of(['', 'x', 'x\n', '\n', 'x\ny']) };
      const parts = change.text.split('\n');
      const last = parts.at(-1) ?? '';
      const reached = {
        line: start.line + parts.length - 1,
        character: parts.length === 1 ? start.character + last.length : last.length,
      };
      inverses.push({ range: { start, end: reached }, text: now.within(change.range) });
      make(change);
    }
    for (const inverse of inverses.reverse()) {
      make(inverse);
    }
    assert.equal(now.text, unique.join('\n'));
    assert.deepEqual(lines(session), before);
  });
});
