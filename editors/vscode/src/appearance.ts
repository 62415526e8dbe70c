/** How SpecEdit is, in words. No `vscode` in here: it is what is tested. */

import type { Status } from './protocol';
import type { ServerState } from './supervisor';

/** Something that the user can do: a command, and what a button that runs it is called. */
export interface Remedy {
  readonly title: string;
  readonly command: string;
  readonly argument?: unknown;
}

/** What went wrong, in one or two sentences that say what to do, and buttons for it. */
export interface Trouble {
  readonly message: string;
  readonly remedies: readonly Remedy[];
}

/** What the status bar shows. */
export interface Appearance {
  readonly text: string;
  /** How it is, as the tooltip's heading says it. */
  readonly heading: string;
  /** What more there is to say; may be empty. */
  readonly detail: string;
  readonly model: string;
  readonly trouble: Trouble | null;
}

const RESTART: Remedy = { title: 'Restart', command: 'specedit.restart' };
const SHOW_LOG: Remedy = { title: 'Show Log', command: 'specedit.showLog' };
const INSTALL: Remedy = { title: 'How to Install', command: 'specedit.openWalkthrough', argument: 'install' };
const CHOOSE_INTERPRETER: Remedy = { title: 'Choose Interpreter', command: 'specedit.chooseInterpreter' };
const SETTINGS: Remedy = {
  title: 'Open Settings',
  command: 'workbench.action.openSettings',
  argument: '@ext:specedit.specedit',
};

/**
 * How SpecEdit is.
 *
 * @param server how the server is
 * @param engine what it told of the engine; null where it has told nothing yet
 * @param isCompleting whether completions are on, for the document that is looked at
 */
export function appearance(server: ServerState, engine: Status | null, isCompleting: boolean): Appearance {
  switch (server.kind) {
    case 'starting':
      return plain('$(loading~spin) SpecEdit', 'is starting');
    case 'missing':
      return server.setting === null
        ? troubled('was not found', server.reason, 'Install it, or choose the Python that has it.', [
            INSTALL,
            CHOOSE_INTERPRETER,
            SHOW_LOG,
          ])
        : troubled('was not found', server.reason, 'Correct the setting, or empty it to have specedit looked for.', [
            { ...SETTINGS, argument: `@id:${server.setting}` },
            INSTALL,
            SHOW_LOG,
          ]);
    case 'failed':
      return troubled('has stopped', server.reason, 'Its log says why.', [RESTART, SHOW_LOG]);
    case 'running':
      return ofEngine(engine, isCompleting);
  }
}

function ofEngine(engine: Status | null, isCompleting: boolean): Appearance {
  const { message, fix, model, percent } = engine ?? { message: '', fix: '', model: '', percent: null };
  switch (engine?.state) {
    case 'loading': {
      const share = percent === null ? '' : ` ${Math.round(percent)}%`;
      return plain(`$(loading~spin) SpecEdit${share}`, 'is getting the model ready', sentence(message), model);
    }
    case 'busy':
      return plain('$(loading~spin) SpecEdit', 'is working', sentence(message), model);
    case 'error': {
      const remedies = [RESTART, SETTINGS, SHOW_LOG];
      return { ...troubled('has no model', message || 'The model does not answer', fix, remedies), model };
    }
    case 'ready':
    case undefined: {
      // Nothing is told of a model before it is asked for, where it isn't warmed up.
      const heading = engine ? 'is ready' : 'is running';
      return isCompleting
        ? plain('$(sparkle) SpecEdit', heading, '', model)
        : plain('$(circle-slash) SpecEdit', heading, 'Completions are off; rewrites work.', model);
    }
  }
}

function plain(text: string, heading: string, detail = '', model = ''): Appearance {
  return { text, heading, detail, model, trouble: null };
}

function troubled(heading: string, reason: string, fix: string, remedies: readonly Remedy[]): Appearance {
  const message = [sentence(reason), sentence(fix)].filter(Boolean).join(' ');
  return { text: '$(error) SpecEdit', heading, detail: message, model: '', trouble: { message, remedies } };
}

/** Words as a sentence: `loading weights` is `Loading weights.` */
function sentence(words: string): string {
  const begun = words.trim().replace(/^[a-z]/, (letter) => letter.toUpperCase());
  return begun && !/[.!?:]$/.test(begun) ? `${begun}.` : begun;
}
