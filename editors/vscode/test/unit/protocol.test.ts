import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ProtocolError,
  readHunk,
  readHunkRemoved,
  readNextEdit,
  readRebased,
  readRewrite,
  readRewriteArgument,
  readRewriteEnd,
  readStatistics,
  readStatus,
} from '../../src/protocol';

const range = { start: { line: 1, character: 0 }, end: { line: 2, character: 0 } };
const hunk = { session: '1', id: 2, uri: 'file:///a.py', version: 3, range, oldText: 'a\n', newText: 'b\n' };

test('messages are taken as they are, without what is not known', () => {
  assert.deepEqual(readHunk({ ...hunk, newer: 'field' }), hunk);
  assert.deepEqual(readHunkRemoved({ session: '1', id: 2 }), { session: '1', id: 2 });
  const rebased = { session: '1', uri: 'file:///a.py', version: 4, lines: -2 };
  assert.deepEqual(readRebased(rebased), rebased);
  const rewrite = { session: '1', uri: 'file:///a.py', version: 3, range, label: 'the function f' };
  assert.deepEqual(readRewrite(rewrite), rewrite);
});

test('what is wrong is named', () => {
  for (const [wrong, said] of [
    [{ ...hunk, session: 1 }, /specedit\/hunk\.session is no text/],
    [{ ...hunk, id: 1.5 }, /\.id is no whole number/],
    [{ ...hunk, newText: undefined }, /\.newText is no text/],
    [{ ...hunk, range: { start: range.start } }, /\.range\.end is no object/],
    [{ ...hunk, range: { start: range.end, end: range.start } }, /\.range ends before it begins/],
    [{ ...hunk, range: { ...range, start: { line: -1, character: 0 } } }, /\.range\.start\.line is below 0/],
    [[hunk], /specedit\/hunk is no object/],
    [null, /specedit\/hunk is no object/],
  ] as const) {
    assert.throws(
      () => readHunk(wrong),
      (error) => error instanceof ProtocolError && said.test(error.message),
    );
  }
});

test('the end of a rewrite is one of four', () => {
  const end = { session: '1', outcome: 'refused', reason: 'it was cut off', fix: 'select less', stats: {} };
  assert.deepEqual(readRewriteEnd(end), {
    session: '1',
    outcome: 'refused',
    reason: 'it was cut off',
    fix: 'select less',
  });
  assert.throws(() => readRewriteEnd({ ...end, outcome: 'done' }), /none of ready, refused, cancelled, stale/);
});

test('a next edit that is taken back has no range and no text', () => {
  const back = readNextEdit({ uri: 'file:///a.py', version: 3, range: null });
  assert.deepEqual(back, { uri: 'file:///a.py', version: 3, range: null, newText: '', source: '' });
  assert.equal(readNextEdit({ ...back, range, newText: 'b', source: 'repeat' }).newText, 'b');
});

test('a status says as much as is known', () => {
  assert.deepEqual(readStatus({ state: 'ready' }), { state: 'ready', message: '', percent: null, fix: '', model: '' });
  assert.equal(readStatus({ state: 'loading', percent: 42 }).percent, 42);
  assert.throws(() => readStatus({ state: 'gone' }), ProtocolError);
});

test('the argument of a code action may lack an instruction', () => {
  const textDocument = { uri: 'file:///a.py', version: 3 };
  assert.deepEqual(readRewriteArgument({ textDocument, range }), { ...textDocument, range, instruction: null });
  assert.equal(
    readRewriteArgument({ textDocument, range, instruction: 'Simplify', apply: 'server' }).instruction,
    'Simplify',
  );
  assert.throws(() => readRewriteArgument({ range }), /textDocument is no object/);
});

test('statistics are numbers', () => {
  const counters = {
    shown: 4,
    accepted: 1,
    rejected: 2,
    acceptedChars: 30,
    answers: 5,
    outputTokens: 99,
    forwards: 0,
    tokensPerForward: null,
    seconds: 1.25,
    secondsSaved: -0.5,
  };
  const all = { countedSeconds: 60.5, inline: counters, rewrite: counters, nextEdit: counters, total: counters };
  assert.deepEqual(readStatistics({ ...all, summary: 'Nothing yet.' }), { ...all, summary: 'Nothing yet.' });
  assert.throws(
    () => readStatistics({ ...all, inline: { ...counters, shown: '4' }, summary: '' }),
    /inline\.shown is no whole number/,
  );
});
