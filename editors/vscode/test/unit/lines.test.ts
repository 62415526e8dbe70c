import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, Lines, splitLines } from '../../src/lines';
import { randomly } from './randomly';

function change(line: number, character: number, toLine: number, toCharacter: number, text: string): Change {
  return { range: { start: { line, character }, end: { line: toLine, character: toCharacter } }, text };
}

test('a text is its lines, whichever ends they have', () => {
  assert.deepEqual(splitLines('a\r\nb\n\rc'), ['a', 'b', '', 'c']);
  assert.equal(Lines.of('a\r\nb').text, Lines.of('a\nb').text);
  // What some languages take for the end of a line is none to an editor.
  assert.equal(Lines.of('a\u2028b\u0085c\fd').count, 1);
  assert.equal(Lines.of('').count, 1);
});

test('a change is made where it is', () => {
  const lines = Lines.of('one\ntwo\nthree');
  assert.equal(lines.after(change(0, 3, 1, 0, '')).text, 'onetwo\nthree');
  assert.equal(lines.after(change(1, 0, 1, 0, 'new\r\n')).text, 'one\nnew\ntwo\nthree');
  assert.equal(lines.after(change(2, 5, 2, 5, '\n')).text, 'one\ntwo\nthree\n');
  assert.equal(lines.text, 'one\ntwo\nthree');
});

test('a part stands somewhere only as whole lines', () => {
  const lines = Lines.of('a\nb\nbc');
  assert.ok(lines.hold(['a', 'b', ''], 0));
  assert.ok(lines.hold(['bc'], 2));
  assert.ok(!lines.hold(['b', ''], 2));
  assert.ok(!lines.hold(['bc', ''], 2));
  assert.ok(!lines.hold(['a', ''], 1));
  assert.ok(lines.hold([''], 2));
  assert.ok(!lines.hold([''], 3));
  assert.ok(!lines.hold(['a'], -1));
});

test('the least of a change does the same, and touches no line that stays', () => {
  const lines = Lines.of('one\ntwo\nthree\nfour\n');
  const all = lines.least(change(0, 0, 4, 0, 'one\r\ntwo\r\n3\r\nfour\r\n'));
  assert.deepEqual(all, change(2, 0, 2, 5, '3'));
  assert.deepEqual(lines.least(change(1, 0, 1, 0, 'two\n')), change(1, 0, 1, 0, 'two\n'));
});

test('the least of random changes does the same', () => {
  randomly(3000, (random) => {
    const lines = Lines.of(random.text(6));
    const start = random.place(lines);
    const end = random.place(lines);
    const [first, last] =
      start.line < end.line || (start.line === end.line && start.character <= end.character)
        ? [start, end]
        : [end, start];
    const given = { range: { start: first, end: last }, text: random.text(5) };
    const least = lines.least(given);
    assert.equal(lines.after(least).text, lines.after(given).text);
  });
});
