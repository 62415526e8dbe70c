/** Where the server may be found, in which order, and which of it is taken. */

import { posix, win32 } from 'node:path';

/** A command that may start the server. */
export interface Candidate {
  /** Why it is one, for the log. */
  readonly origin: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** What is known of the machine and the editor; paths are filled in, and empty where nothing is set. */
export interface Surroundings {
  readonly isWindows: boolean;
  /** Whether what lies in the folders may be run. */
  readonly isTrusted: boolean;
  readonly folders: readonly string[];
  /** `specedit.server.path` */
  readonly path: string;
  /** `specedit.server.interpreter` */
  readonly interpreter: string;
  /** `python.defaultInterpreterPath` */
  readonly defaultInterpreter: string;
  /** What the Python extension has chosen; it may take a while to say. */
  readonly activeInterpreter: () => Promise<string | null>;
  /** The program of that name on `PATH`, as an absolute path. */
  readonly onPath: (name: string) => string | null;
}

/** A candidate that does not work, and why. */
export interface Failure {
  readonly candidate: Candidate;
  readonly reason: string;
}

/** What a search found: the first candidate that works, and those before it. */
export interface Search {
  readonly found: Candidate | null;
  readonly failures: readonly Failure[];
}

/**
 * All that may start the server, the best first.
 *
 * What a setting names is the only candidate: another one in its place would not be what was asked for. Nothing of a
 * folder that is not trusted is among them, nor what the Python extension says, which may come from there.
 */
export async function* candidates(around: Surroundings): AsyncGenerator<Candidate> {
  if (around.path) {
    yield program('specedit.server.path', located(around, around.path));
    return;
  }
  if (around.interpreter) {
    yield python('specedit.server.interpreter', located(around, around.interpreter));
    return;
  }
  const tried = new Set<string>();
  for await (const candidate of found(around)) {
    if (!tried.has(candidate.command)) {
      tried.add(candidate.command);
      yield candidate;
    }
  }
}

async function* found(around: Surroundings): AsyncGenerator<Candidate> {
  if (around.isTrusted) {
    const active = await around.activeInterpreter();
    if (active) {
      yield python('the Python extension', active);
    }
    if (around.defaultInterpreter) {
      yield python('python.defaultInterpreterPath', located(around, around.defaultInterpreter));
    }
    for (const folder of around.folders) {
      for (const name of ['.venv', 'venv']) {
        yield python(`${name} of the workspace`, inEnvironment(around, folder, name));
      }
    }
  }
  const installed = around.onPath('specedit');
  if (installed) {
    yield program('PATH', installed);
  }
  for (const name of ['python3', 'python', ...(around.isWindows ? ['py'] : [])]) {
    const interpreter = around.onPath(name);
    if (interpreter) {
      yield python(`${name} on PATH`, interpreter);
    }
  }
}

/**
 * The first candidate that works; later ones are not tried.
 *
 * @param whyNot says why a candidate does not work; null where it does
 */
export async function search(
  among: AsyncIterable<Candidate>,
  whyNot: (candidate: Candidate) => Promise<string | null>,
): Promise<Search> {
  const failures: Failure[] = [];
  for await (const candidate of among) {
    const reason = await whyNot(candidate);
    if (reason === null) {
      return { found: candidate, failures };
    }
    failures.push({ candidate, reason });
  }
  return { found: null, failures };
}

/**
 * Where a program lies among the directories of `PATH`.
 *
 * Directories that are not absolute are passed over: they mean another one in each folder, maybe one that is not trusted.
 */
export function onPath(
  name: string,
  path: string,
  isWindows: boolean,
  isProgram: (path: string) => boolean,
): string | null {
  const { delimiter, isAbsolute, join } = isWindows ? win32 : posix;
  for (const directory of path.split(delimiter)) {
    const file = isAbsolute(directory) ? join(directory, isWindows ? `${name}.exe` : name) : null;
    if (file !== null && isProgram(file)) {
      return file;
    }
  }
  return null;
}

function program(origin: string, command: string): Candidate {
  return { origin, command, args: ['lsp'] };
}

/** A Python as what starts the server. */
export function python(origin: string, command: string): Candidate {
  // With -P no module is taken from the directory that it is started in.
  return { origin, command, args: ['-P', '-m', 'specedit_lsp'] };
}

/** A path that a setting names: one of a folder, of the whole machine, or the name of a program. */
function located(around: Surroundings, path: string): string {
  const { isAbsolute, join } = around.isWindows ? win32 : posix;
  if (isAbsolute(path)) {
    return path;
  }
  if (!/[\\/]/.test(path)) {
    return around.onPath(path) ?? path;
  }
  const folder = around.folders[0];
  return folder === undefined ? path : join(folder, path);
}

function inEnvironment(around: Surroundings, folder: string, name: string): string {
  return around.isWindows
    ? win32.join(folder, name, 'Scripts', 'python.exe')
    : posix.join(folder, name, 'bin', 'python');
}
