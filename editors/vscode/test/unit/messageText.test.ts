import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutLinks } from '../../src/messageText';

test('no link is left that an editor would make of it', () => {
  const link = /\[([^\]]+)\]\(/;
  for (const text of ['see [here](command:run "now")', '[a](https://b) [c](file:d)', '[[a](command:b)']) {
    assert.match(text, link);
    assert.doesNotMatch(withoutLinks(text), link);
  }
});

test('everything else reads as it is', () => {
  assert.equal(withoutLinks('f(a[0]) is not (here) [now]'), 'f(a[0]) is not (here) [now]');
  assert.equal(withoutLinks('a[0](b)').replace('\u200b', ''), 'a[0](b)');
});
