import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appearance } from '../../src/appearance';
import { readStatus } from '../../src/protocol';
import type { ServerState } from '../../src/supervisor';

const running: ServerState = { kind: 'running', version: '0.1.0', command: '/usr/bin/specedit' };

function engine(given: object, isCompleting = true) {
  return appearance(running, readStatus(given), isCompleting);
}

test('loading tells how far it is', () => {
  const shown = engine({ state: 'loading', message: 'reading the weights', percent: 41.6, model: 'qwen' });
  assert.equal(shown.text, '$(loading~spin) SpecEdit 42%');
  assert.equal(shown.detail, 'Reading the weights.');
  assert.equal(shown.model, 'qwen');
  assert.equal(engine({ state: 'loading' }).text, '$(loading~spin) SpecEdit');
});

test('it is ready, or works, and that is no trouble', () => {
  assert.equal(engine({ state: 'ready', model: 'qwen' }).text, '$(sparkle) SpecEdit');
  assert.equal(engine({ state: 'busy', message: 'completing' }).text, '$(loading~spin) SpecEdit');
  assert.equal(engine({ state: 'ready' }).trouble, null);
  assert.equal(appearance(running, null, true).text, '$(sparkle) SpecEdit');
  assert.equal(appearance({ kind: 'starting' }, null, true).text, '$(loading~spin) SpecEdit');
});

test('completions that are off are seen, and what goes on besides is too', () => {
  assert.equal(engine({ state: 'ready' }, false).text, '$(circle-slash) SpecEdit');
  assert.match(engine({ state: 'ready' }, false).detail, /Completions are off/);
  assert.equal(engine({ state: 'busy', message: 'rewriting' }, false).text, '$(loading~spin) SpecEdit');
});

test('an engine that fails says what happened and what to do', () => {
  const { text, trouble } = engine({
    state: 'error',
    message: 'nothing answers at http://gpu:8765',
    fix: 'Start specedit serve there',
  });
  assert.equal(text, '$(error) SpecEdit');
  assert.equal(trouble?.message, 'Nothing answers at http://gpu:8765. Start specedit serve there.');
  assert.deepEqual(
    trouble?.remedies.map((remedy) => remedy.title),
    ['Restart', 'Open Settings', 'Show Log'],
  );
});

test('a server that is not found can be installed or chosen', () => {
  const { trouble } = appearance({ kind: 'missing', reason: 'it is not there', setting: null }, null, true);
  assert.equal(trouble?.message, 'It is not there. Install it, or choose the Python that has it.');
  assert.deepEqual(
    trouble?.remedies.map((remedy) => remedy.title),
    ['How to Install', 'Choose Interpreter', 'Show Log'],
  );
});

test('where a setting names the server, that setting is what mends it', () => {
  const state: ServerState = { kind: 'missing', reason: 'it is not there', setting: 'specedit.server.path' };
  const { trouble } = appearance(state, null, true);
  assert.match(trouble?.message ?? '', /Correct the setting/);
  assert.equal(trouble?.remedies[0]?.argument, '@id:specedit.server.path');
});

test('a server that ended can be started again, whatever the engine said before', () => {
  const { text, heading, trouble } = appearance(
    { kind: 'failed', reason: 'it ended' },
    readStatus({ state: 'ready' }),
    true,
  );
  assert.equal(text, '$(error) SpecEdit');
  assert.equal(heading, 'has stopped');
  assert.equal(trouble?.remedies[0]?.command, 'specedit.restart');
});
