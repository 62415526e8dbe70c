import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, offered } from '../../src/history';

function store(kept?: unknown) {
  const values = new Map<string, unknown>([['specedit.instructions', kept]]);
  return {
    get: <T>(key: string) => values.get(key) as T | undefined,
    update: async (key: string, value: unknown) => {
      values.set(key, value);
    },
  };
}

test('the last instruction comes first, and each is there once', async () => {
  const history = new History(store());
  for (const instruction of ['simplify', 'add types', 'simplify']) {
    await history.add(instruction);
  }
  assert.deepEqual(history.instructions, ['simplify', 'add types']);
});

test('a hundred are kept, and none after they are cleared', async () => {
  const history = new History(store());
  for (let number = 1; number <= 120; number += 1) {
    await history.add(`number ${number}`);
  }
  assert.equal(history.instructions.length, 100);
  assert.equal(history.instructions[0], 'number 120');
  assert.equal(history.instructions.at(-1), 'number 21');
  await history.clear();
  assert.deepEqual(history.instructions, []);
});

test('what was kept by something else does no harm', () => {
  assert.deepEqual(new History(store('simplify')).instructions, []);
  assert.deepEqual(new History(store(['simplify', 3, null])).instructions, ['simplify']);
});

function names(instructions: readonly string[], typed: string): string[] {
  return offered(instructions, typed).map(({ instruction }) => instruction);
}

test('what is typed is offered first, then what was said earlier with all its words', () => {
  const earlier = ['Add type hints', 'Add a docstring', 'Simplify'];
  assert.deepEqual(names(earlier, ''), earlier);
  assert.deepEqual(names(earlier, 'add'), ['add', 'Add type hints', 'Add a docstring']);
  assert.deepEqual(names(earlier, ' hints add '), ['hints add', 'Add type hints']);
  assert.deepEqual(names(earlier, 'Simplify'), ['Simplify']);
  assert.deepEqual(names(earlier, '   '), earlier);
});

test('each offer says for what it was made', () => {
  assert.deepEqual(offered(['Simplify'], ' sim '), [
    { instruction: 'sim', typed: 'sim' },
    { instruction: 'Simplify', typed: 'sim' },
  ]);
});
