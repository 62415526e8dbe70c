// Bundles the extension into dist/extension.js; with --tests, each unit test into dist/test/ instead.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const isForTests = process.argv.includes('--tests');
const isForProduction = process.argv.includes('--production');
const tests = join('test', 'unit');

rmSync(isForTests ? join('dist', 'test') : join('dist', 'extension.js.map'), { recursive: true, force: true });

const { metafile } = await build({
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
  logLevel: 'warning',
  metafile: true,
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

if (!isForTests) {
  writeFileSync(join('dist', 'licenses.txt'), licenses(Object.keys(metafile.inputs)));
}

/** The licenses of the packages that the files come from: they ask to go with every copy. */
function licenses(files) {
  const packages = files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]).filter(Boolean);
  return [...new Set(packages)]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      if (file === undefined) {
        throw new Error(`${folder} has no license file. Look at its terms before it is bundled.`);
      }
      return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}
