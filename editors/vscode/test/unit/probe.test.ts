import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { whyNot } from '../../src/probe';

const running = { cwd: tmpdir(), env: process.env };

function script(text: string, mode = 0o755): string {
  const path = join(mkdtempSync(join(tmpdir(), 'specedit-')), 'specedit');
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, mode);
  return path;
}

function ofScript(text: string, mode?: number): Promise<string | null> {
  return whyNot({ origin: 'a test', command: script(text, mode), args: ['lsp'] }, running);
}

const onUnix = { skip: process.platform === 'win32' && 'the programs of this test are shell scripts' };

test('what answers when it is asked for help works', onUnix, async () => {
  assert.equal(await ofScript('test "$1 $2" = "lsp --help"'), null);
});

test('what it says last is why it does not', onUnix, async () => {
  assert.equal(
    await ofScript('echo more >&2; echo "No module named specedit_lsp" >&2; exit 1'),
    'No module named specedit_lsp',
  );
  assert.equal(await ofScript('exit 7'), 'it ended with code 7');
});

test('so is that it is not there, or no program', onUnix, async () => {
  assert.equal(
    await whyNot({ origin: 'a test', command: join(tmpdir(), 'nothing', 'specedit'), args: [] }, running),
    'there is no such program',
  );
  assert.equal(await ofScript('exit 0', 0o644), 'it may not be run');
});
