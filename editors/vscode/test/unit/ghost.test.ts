import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitsGhosts, ghosts, replacedParts, shown } from '../../src/ghost';

function hunk(line: number, oldText: string, newText: string) {
  return { range: { start: { line } }, oldText, newText };
}

test('each new line is shown after the old one in its place', () => {
  assert.deepEqual(ghosts(hunk(3, '  a\n  b\n', '  A\n  B\n')), [
    { line: 3, text: '→ A' },
    { line: 4, text: '→ B' },
  ]);
  assert.deepEqual(ghosts(hunk(3, 'a\nb\nc\n', 'a\nB\n')), [{ line: 4, text: '→ B' }]);
  assert.deepEqual(ghosts(hunk(3, 'a', 'A')), [{ line: 3, text: '→ A' }]);
});

test('what has no line in its place is counted', () => {
  assert.deepEqual(ghosts(hunk(3, 'a\n', 'A\nB\nC\n')), [{ line: 3, text: '→ A  (and 2 more lines)' }]);
  assert.deepEqual(ghosts(hunk(3, 'a\nb\n', 'A\nB\nC\n')), [
    { line: 3, text: '→ A' },
    { line: 4, text: '→ B  (and 1 more line)' },
  ]);
});

test('what is only added is shown after the line above, and what is only removed is not', () => {
  assert.deepEqual(ghosts(hunk(3, '', 'new\n')), [{ line: 2, text: '↵ new' }]);
  assert.deepEqual(ghosts(hunk(0, '', 'new\n')), [{ line: 0, text: '↑ new' }]);
  assert.deepEqual(ghosts(hunk(3, 'a\nb\n', '')), []);
});

test('a long line is cut', () => {
  assert.equal(shown('→', ['x'.repeat(200)]).length, 163);
});

test('ghosts have room for as many lines as there were, and for one', () => {
  assert.ok(fitsGhosts(hunk(0, 'a\nb\n', 'A\nB\n')));
  assert.ok(fitsGhosts(hunk(0, '', 'A\n')));
  assert.ok(fitsGhosts(hunk(0, 'a\n', '')));
  assert.ok(!fitsGhosts(hunk(0, '', 'A\nB\n')));
  assert.ok(!fitsGhosts(hunk(0, 'a\n', 'A\nB\n')));
});

test('of a line that is replaced, the part that goes is known', () => {
  assert.deepEqual(replacedParts(hunk(2, 'f(a, b)\n', 'f(a, c)\n')), [{ line: 2, first: 5, end: 6 }]);
  assert.deepEqual(replacedParts(hunk(2, 'f(a)\n', 'f(a, b)\n')), []);
  assert.deepEqual(replacedParts(hunk(2, 'a (aa\n', 'a (aaa\n')), [{ line: 2, first: 3, end: 5 }]);
  assert.deepEqual(replacedParts(hunk(2, 'aaa)\n', 'aa)\n')), [{ line: 2, first: 0, end: 3 }]);
  assert.deepEqual(replacedParts(hunk(2, 'f(res.a)\n', 'f(bounds.a)\n')), [{ line: 2, first: 2, end: 5 }]);
  assert.deepEqual(replacedParts(hunk(2, 'x \u{1f600}\n', 'x \u{1f601}\n')), [{ line: 2, first: 2, end: 4 }]);
});
