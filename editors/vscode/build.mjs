// Bundles the extension into dist/extension.js; with --tests, each unit test into dist/test/ instead.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const isForTests = process.argv.includes('--tests');
const isForProduction = process.argv.includes('--production');
const tests = join('test', 'unit');

rmSync(isForTests ? join('dist', 'test') : join('dist', 'extension.js.map'), { recursive: true, force: true });

await build({
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
  logLevel: 'warning',
  ...(isForTests
    ? {
        entryPoints: readdirSync(tests)
          .filter((name) => name.endsWith('.test.ts'))
          .map((name) => join(tests, name)),
        outdir: join('dist', 'test'),
        outExtension: { '.js': '.cjs' },
        sourcemap: 'inline',
      }
    : {
        entryPoints: [join('src', 'extension.ts')],
        outfile: join('dist', 'extension.js'),
        minify: isForProduction,
        sourcemap: !isForProduction,
      }),
});
