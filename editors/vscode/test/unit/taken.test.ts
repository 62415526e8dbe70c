import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takenLength } from '../../src/taken';

// In the text at offset 100, with "ret" of it in the document.
const offered = { text: 'return total', offset: 100, length: 3 };

test('a word that is inserted at the cursor, or in place of what stood there, is taken', () => {
  assert.equal(takenLength(offered, { rangeOffset: 103, rangeLength: 0, text: 'urn' }), 6);
  assert.equal(takenLength(offered, { rangeOffset: 100, rangeLength: 3, text: 'return' }), 6);
  assert.equal(takenLength(offered, { rangeOffset: 103, rangeLength: 0, text: 'urn total' }), 12);
});

test('any other change is not', () => {
  assert.equal(takenLength(offered, { rangeOffset: 103, rangeLength: 0, text: 'ry' }), null);
  assert.equal(takenLength(offered, { rangeOffset: 50, rangeLength: 0, text: 'urn' }), null);
  assert.equal(takenLength(offered, { rangeOffset: 102, rangeLength: 0, text: 'turn' }), null);
  assert.equal(takenLength(offered, { rangeOffset: 102, rangeLength: 1, text: '' }), null);
  assert.equal(takenLength(offered, { rangeOffset: 103, rangeLength: 5, text: 'urn' }), null);
});
