import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesOf, nearest, proposed } from '../../src/proposal';
import { type OpenHunk, Session } from '../../src/session';

const session = new Session('', 1, '');

function hunk(id: number, line: number, oldText: string, newText: string): OpenHunk {
  const parts = oldText.split('\n');
  const end = { line: line + parts.length - 1, character: parts.at(-1)?.length ?? 0 };
  return { session, id, range: { start: { line, character: 0 }, end }, oldText, newText };
}

test('a text with all changes made, and where they are in it', () => {
  const { text, places } = proposed('a\r\nb\r\nc\r\nd\r\n', [
    hunk(1, 0, '', 'new\nnewer\n'),
    hunk(2, 1, 'b\n', ''),
    hunk(3, 3, 'd\n', 'D\n'),
  ]);
  assert.equal(text, 'new\nnewer\na\nc\nD\n');
  assert.deepEqual(
    places.map(({ lines }) => lines),
    [
      { first: 0, end: 2 },
      { first: 3, end: 3 },
      { first: 4, end: 5 },
    ],
  );
});

test('a last line may be without an end, and may get one', () => {
  assert.equal(proposed('a\nb', [hunk(1, 1, 'b', 'B\nc')]).text, 'a\nB\nc');
  assert.equal(proposed('', [hunk(1, 0, '', 'a\n')]).text, 'a\n');
  assert.equal(proposed('a\nb', [hunk(1, 0, 'a\nb', 'c')]).text, 'c');
});

test('lines are counted, with or without the end of the last', () => {
  assert.deepEqual(['', 'a', 'a\n', 'a\nb', '\n'].map(linesOf), [0, 1, 1, 2, 1]);
});

test('what is meant is at the cursor, else below it, else the first', () => {
  const items = [
    { name: 'one', lines: { first: 2, end: 4 } },
    { name: 'gap', lines: { first: 6, end: 6 } },
    { name: 'two', lines: { first: 8, end: 9 } },
  ];
  const names = [0, 2, 3, 4, 6, 7, 8, 9].map((line) => nearest(items, line)?.name);
  assert.deepEqual(names, ['one', 'one', 'one', 'gap', 'gap', 'two', 'two', 'one']);
  assert.equal(nearest([], 0), undefined);
});
