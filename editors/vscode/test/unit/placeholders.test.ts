import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filledIn } from '../../src/placeholders';

const places = { home: '/home/ada', workspaceFolder: '/src/shop', env: { TOOLS: '/opt/tools' } };

test('placeholders are filled in', () => {
  assert.equal(filledIn('~/bin/specedit', places), '/home/ada/bin/specedit');
  assert.equal(filledIn('~', places), '/home/ada');
  assert.equal(filledIn('${userHome}/bin', places), '/home/ada/bin');
  assert.equal(filledIn('${workspaceFolder}/.venv/bin/python', places), '/src/shop/.venv/bin/python');
  assert.equal(filledIn(' ${env:TOOLS}/specedit ', places), '/opt/tools/specedit');
});

test('what stands for nothing names no file', () => {
  assert.equal(
    filledIn('${workspaceFolder}/python', { ...places, workspaceFolder: null }),
    '${workspaceFolder}/python',
  );
  assert.equal(filledIn('${env:NOTHING}/specedit', places), '/specedit');
});

test('everything else stays as it is', () => {
  assert.equal(filledIn('/opt/a~b/${other}', places), '/opt/a~b/${other}');
  assert.equal(filledIn('~ada/bin', places), '~ada/bin');
  assert.equal(filledIn('', places), '');
});
