import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Restarts } from '../../src/restarts';

test('a server that crashes again and again is left', () => {
  let now = 0;
  const restarts = new Restarts(3, 180, () => now);
  assert.deepEqual(
    [0, 1000, 2000, 3000].map((time) => {
      now = time;
      return restarts.crashed();
    }),
    [true, true, true, false],
  );
});

test('crashes of long ago, and those before the user took it in hand, are forgotten', () => {
  let now = 0;
  const restarts = new Restarts(1, 180, () => now);
  assert.equal(restarts.crashed(), true);
  now = 180_000;
  assert.equal(restarts.crashed(), true);
  assert.equal(restarts.crashed(), false);
  restarts.forget();
  assert.equal(restarts.crashed(), true);
});
