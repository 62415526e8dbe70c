import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Counters } from '../../src/protocol';
import { report } from '../../src/report';

const none: Counters = {
  shown: 0,
  accepted: 0,
  rejected: 0,
  acceptedChars: 0,
  answers: 0,
  outputTokens: 0,
  forwards: 0,
  tokensPerForward: null,
  seconds: 0,
  secondsSaved: 0,
};

test('numbers stand in one table, and the summary above it', () => {
  const some = {
    ...none,
    shown: 8,
    accepted: 2,
    rejected: 1,
    acceptedChars: 40,
    tokensPerForward: 3.14,
    seconds: 2.04,
  };
  const page = report({
    countedSeconds: 60,
    inline: some,
    rewrite: none,
    nextEdit: none,
    total: some,
    summary: 'In the last minute:\n2 answers: <b> | c',
  });
  assert.match(page, /^\| Completions \| 8 \| 2 \(25%\) \| 1 \| 40 \| 0 \| 0 \| 3\.1 \| 2\.0 \|$/m);
  assert.match(page, /^\| Rewrites \| 0 \| 0 \| 0 \| 0 \| 0 \| 0 \| {2}\| 0\.0 \|$/m);
  assert.ok(page.includes('In the last minute:  \n2 answers: \\<b\\> \\| c\n'));
});
