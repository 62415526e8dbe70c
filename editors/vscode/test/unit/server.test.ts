import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Candidate, candidates, onPath, type Surroundings, search } from '../../src/server';

const MODULE = ['-P', '-m', 'specedit_lsp'];

function surroundings(given: Partial<Surroundings> = {}): Surroundings {
  return {
    isWindows: false,
    isTrusted: true,
    folders: ['/src/shop'],
    path: '',
    interpreter: '',
    defaultInterpreter: '',
    activeInterpreter: async () => null,
    onPath: () => null,
    ...given,
  };
}

async function all(given: Partial<Surroundings>): Promise<string[]> {
  const found: string[] = [];
  for await (const { command, args } of candidates(surroundings(given))) {
    found.push([command, ...args].join(' '));
  }
  return found;
}

const everything: Partial<Surroundings> = {
  defaultInterpreter: '/opt/python',
  activeInterpreter: async () => '/envs/chosen/bin/python',
  onPath: (name) => `/usr/bin/${name}`,
};

test('what a setting names is all that is tried', async () => {
  assert.deepEqual(await all({ ...everything, path: '/opt/specedit', interpreter: '/opt/python3' }), [
    '/opt/specedit lsp',
  ]);
  assert.deepEqual(await all({ ...everything, interpreter: '/opt/python3' }), [`/opt/python3 ${MODULE.join(' ')}`]);
});

test('environments go before what is on PATH, and nothing is tried twice', async () => {
  const module = ` ${MODULE.join(' ')}`;
  assert.deepEqual(await all(everything), [
    `/envs/chosen/bin/python${module}`,
    `/opt/python${module}`,
    `/src/shop/.venv/bin/python${module}`,
    `/src/shop/venv/bin/python${module}`,
    '/usr/bin/specedit lsp',
    `/usr/bin/python3${module}`,
    `/usr/bin/python${module}`,
  ]);
  const chosen = await all({ activeInterpreter: async () => '/src/shop/.venv/bin/python' });
  assert.deepEqual(chosen, [`/src/shop/.venv/bin/python${module}`, `/src/shop/venv/bin/python${module}`]);
});

test('of a folder that is not trusted nothing is run', async () => {
  assert.deepEqual(await all({ ...everything, isTrusted: false }), [
    '/usr/bin/specedit lsp',
    `/usr/bin/python3 ${MODULE.join(' ')}`,
    `/usr/bin/python ${MODULE.join(' ')}`,
  ]);
});

test('a path may be of the workspace, and a name is looked for on PATH', async () => {
  assert.deepEqual(await all({ path: 'tools/specedit' }), ['/src/shop/tools/specedit lsp']);
  assert.deepEqual(await all({ path: 'specedit', onPath: (name) => `/usr/bin/${name}` }), ['/usr/bin/specedit lsp']);
  assert.deepEqual(await all({ interpreter: 'python3.12' }), [`python3.12 ${MODULE.join(' ')}`]);
});

test('on Windows environments lie elsewhere, and there is py', async () => {
  const found = await all({
    isWindows: true,
    folders: ['C:\\shop'],
    onPath: (name) => (name === 'py' ? 'C:\\Windows\\py.exe' : null),
  });
  assert.deepEqual(
    found.map((command) => command.split(' ')[0]),
    ['C:\\shop\\.venv\\Scripts\\python.exe', 'C:\\shop\\venv\\Scripts\\python.exe', 'C:\\Windows\\py.exe'],
  );
});

test('the first that works is taken, and it is told why the others were not', async () => {
  const tried: string[] = [];
  const whyNot = async ({ command }: Candidate) => {
    tried.push(command);
    return command === '/opt/python' ? null : 'no module named specedit_lsp';
  };
  const { found, failures } = await search(candidates(surroundings(everything)), whyNot);
  assert.equal(found?.command, '/opt/python');
  assert.deepEqual(
    failures.map(({ candidate, reason }) => [candidate.command, reason]),
    [['/envs/chosen/bin/python', 'no module named specedit_lsp']],
  );
  assert.deepEqual(tried, ['/envs/chosen/bin/python', '/opt/python']);
});

test('where none works, nothing is found', async () => {
  const { found, failures } = await search(candidates(surroundings()), async () => 'there is no such program');
  assert.equal(found, null);
  assert.equal(failures.length, 2);
});

test('programs are found in the absolute directories of PATH alone', () => {
  const isThere = (path: string) => ['/src/shop/specedit', 'bin/specedit', '/usr/bin/specedit'].includes(path);
  assert.equal(onPath('specedit', '.:bin::/usr/local/bin:/usr/bin', false, isThere), '/usr/bin/specedit');
  assert.equal(onPath('specedit', '/usr/local/bin', false, isThere), null);
  assert.equal(
    onPath('py', '.;C:\\Windows', true, (path) => path === 'C:\\Windows\\py.exe'),
    'C:\\Windows\\py.exe',
  );
});
