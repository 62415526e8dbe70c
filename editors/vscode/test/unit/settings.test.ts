import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../../package.json';
import { environment, FOLDER_OPTIONS, nested, OWN_OPTIONS, RESTARTING } from '../../src/settings';

const settings = new Map<string, { scope: string; default: unknown }>(
  manifest.contributes.configuration.flatMap((part) => Object.entries(part.properties)),
);

test('options are nested as their names are', () => {
  const set = new Map<string, unknown>([
    ['inline.enabled', false],
    ['inline.debounceMs', 0],
    ['model', 'qwen2.5-coder-1.5b'],
  ]);
  assert.deepEqual(
    nested(['inline.enabled', 'model', 'inline.debounceMs', 'engine'], (key) => set.get(key)),
    { inline: { enabled: false, debounceMs: 0 }, model: 'qwen2.5-coder-1.5b' },
  );
});

test('what is empty counts as not set', () => {
  const set = new Map<string, unknown>([
    ['engine', ''],
    ['inline.prefixTokens', null],
  ]);
  assert.deepEqual(
    nested(['engine', 'inline.prefixTokens'], (key) => set.get(key)),
    {},
  );
});

test('at the defaults of the extension, the server is told what its own are', () => {
  const options = nested(FOLDER_OPTIONS, (key) => settings.get(`specedit.${key}`)?.default);
  assert.deepEqual(options.nextEdit, { enabled: true, model: true });
  assert.deepEqual(
    nested(OWN_OPTIONS, (key) => settings.get(`specedit.${key}`)?.default),
    {
      warmUp: true,
      idleExitMinutes: 30,
      logLevel: 'info',
      rewrite: { allowDeletions: false, allowSyntaxErrors: false, confirm: true },
    },
  );
});

test('what a workspace can set is never sent as what the user has set', () => {
  for (const key of OWN_OPTIONS) {
    assert.equal(settings.get(`specedit.${key}`)?.scope, 'machine', key);
  }
  for (const key of FOLDER_OPTIONS) {
    assert.equal(settings.get(`specedit.${key}`)?.scope, 'resource', key);
  }
});

test('each setting of the server is sent, or read when it is started', () => {
  const used = new Set([...RESTARTING, ...FOLDER_OPTIONS.map((key) => `specedit.${key}`)]);
  const others = [...settings.keys()].filter((name) => !used.has(name));
  assert.deepEqual(others.sort(), ['specedit.rewrite.preview', 'specedit.trace.server']);
});

test('an environment holds texts', () => {
  assert.deepEqual(environment({ HF_HOME: '/models', PORT: 8765, NONE: null }), { HF_HOME: '/models' });
  assert.deepEqual(environment(null), {});
  assert.deepEqual(environment('HF_HOME=/models'), {});
});
