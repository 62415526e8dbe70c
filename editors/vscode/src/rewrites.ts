import * as vscode from 'vscode';
import { replaceAll, toRange } from './apply';
import type { Server } from './client';
import { Diffs } from './diff';
import { fitsGhosts } from './ghost';
import { History } from './history';
import { count, Lenses } from './lenses';
import { withoutLinks } from './messageText';
import { Preview } from './preview';
import { askInstruction } from './prompt';
import { nearest, type PlacedHunk } from './proposal';
import { type Range, readRange, readRewriteArgument } from './protocol';
import type { OpenHunk, Session } from './session';
import { type Ended, Sessions } from './sessions';

/** Rewriting: its commands, previews and edits. Everything ends with what is returned. */
export function register(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const sessions = new Sessions(server);
  const diffs = new Diffs(sessions);
  const rewrites = new Rewrites(server, sessions, diffs, new History(context.globalState));
  return vscode.Disposable.from(
    rewrites,
    new Preview(sessions),
    vscode.languages.registerCodeLensProvider({ pattern: '**' }, new Lenses(sessions, diffs)),
    diffs,
    sessions,
  );
}

/** What commands of lenses and hovers name; without it, what is at the cursor is meant. */
interface Named {
  readonly session?: string;
  readonly id?: number;
}

/** Where the user is. */
interface Place {
  readonly editor: vscode.TextEditor;
  /** What is edited; of a preview, what it is a preview of. */
  readonly document: vscode.TextDocument;
}

/** Changes of a rewrite to decide on; whether they are all that are open. */
interface Decision {
  readonly session: Session;
  readonly hunks: readonly OpenHunk[];
  readonly all: boolean;
}

class Rewrites implements vscode.Disposable {
  private readonly registrations: vscode.Disposable[];
  private readonly status = vscode.window.createStatusBarItem('specedit.changes', vscode.StatusBarAlignment.Left);
  private edits: Promise<unknown> = Promise.resolve();
  private tokens = 0;

  constructor(
    private readonly server: Server,
    private readonly sessions: Sessions,
    private readonly diffs: Diffs,
    private readonly history: History,
  ) {
    const commands: Record<string, (argument: unknown) => unknown> = {
      rewriteSelection: (argument) => this.rewrite(argument, false),
      rewriteFunction: (argument) => this.rewrite(argument, true),
      acceptChange: (named) => this.decideOne(named, 'accepted'),
      rejectChange: (named) => this.decideOne(named, 'rejected'),
      acceptAllChanges: (named) => this.decideAll(named, 'accepted'),
      rejectAllChanges: (named) => this.decideAll(named, 'rejected'),
      nextChange: (named) => this.go(named, 1),
      previousChange: (named) => this.go(named, -1),
      cancelChanges: (named) => this.cancel(named),
      regenerateChanges: (named) => this.regenerate(named),
      showDiff: (named) => this.showDiff(named),
      clearHistory: () => this.history.clear(),
    };
    this.status.name = 'SpecEdit Changes';
    this.status.command = 'specedit.nextChange';
    this.registrations = [
      this.status,
      ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`specedit.${name}`, told(run))),
      server.takeOver(
        'specedit.rewrite',
        told((argument) => this.run(argument)),
      ),
      server.takeOver(
        'specedit.askInstruction',
        told((argument) => this.run(argument)),
      ),
      vscode.commands.registerCommand(
        'specedit.askInstruction',
        told((argument) => this.run(argument)),
      ),
      sessions.onDidEnd((ended) => this.showEnd(ended)),
      sessions.onDidLose((lost) => {
        const what = lost === 1 ? 'a rewrite' : `${lost} rewrites`;
        void vscode.window.showWarningMessage(
          `SpecEdit's server has stopped, and ${what} with it. What you accepted stays; ask again for the rest.`,
        );
      }),
      sessions.onDidChange((document) => this.showState(document)),
      vscode.window.onDidChangeActiveTextEditor(() => this.showState()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }

  // --- asking

  /** Rewrite what is selected, or the function at the cursor. */
  private async rewrite(argument: unknown, isFunction: boolean): Promise<void> {
    const place = this.place();
    if (!place) {
      throw new Error('No file is open to rewrite something in. Open one and select what to rewrite.');
    }
    const { document, editor } = place;
    if (editor.document !== document) {
      throw new Error('This is a preview of what is proposed. Accept or reject that, then rewrite the file itself.');
    }
    const given = argumentOf(argument);
    const selected = (): vscode.Range => {
      const { active } = editor.selection;
      return isFunction ? new vscode.Range(active, active) : (given.range ?? editor.selection);
    };
    const instruction =
      given.instruction ?? (await askInstruction(this.history, titleOf(selected(), document, editor)));
    if (instruction) {
      const part = selected();
      await this.start(document, part, instruction, document.version);
      if (editor.selection.isEqual(part)) {
        // What is proposed is not to be seen through a selection.
        editor.selection = new vscode.Selection(part.start, part.start);
      }
    }
  }

  /** Run a code action of the server's. */
  private async run(argument: unknown): Promise<void> {
    const { uri, version, range, instruction } = readRewriteArgument(argument);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
    const asked = instruction ?? (await askInstruction(this.history, titleOf(range, document)));
    if (asked) {
      await this.start(document, range, asked, version ?? document.version);
    }
  }

  private async start(
    document: vscode.TextDocument,
    range: Range,
    instruction: string,
    version: number,
  ): Promise<void> {
    const { start, end } = range;
    const part = {
      start: { line: start.line, character: start.character },
      end: { line: end.line, character: end.character },
    };
    const textDocument = { uri: document.uri.toString(), version };
    await this.begin(document, instruction, (workDoneToken) =>
      this.server.command('specedit.rewrite', {
        textDocument,
        range: part,
        instruction,
        apply: 'client',
        workDoneToken,
      }),
    );
  }

  private async begin(
    document: vscode.TextDocument,
    instruction: string,
    ask: (token: string) => Promise<unknown>,
  ): Promise<void> {
    this.tokens += 1;
    const token = `specedit-rewrite-${this.tokens}`;
    const early: unknown[] = [];
    let session: Session | undefined;
    const show = (value: unknown): void => {
      const percent = percentOf(value);
      if (session && percent !== undefined) {
        session.percent = percent;
        this.sessions.tellChange(session);
      }
    };
    const progress = this.server.onProgress(token, (value) => (session ? show(value) : early.push(value)));
    const ended = this.sessions.onDidEnd((end) => {
      if (end.session === session) {
        stop();
      }
    });
    const stop = (): void => vscode.Disposable.from(progress, ended).dispose();
    try {
      session = await this.sessions.begin(document, instruction, () => ask(token));
      for (const value of early) {
        show(value);
      }
    } catch (error) {
      stop();
      throw error;
    }
  }

  private async regenerate(named: unknown): Promise<void> {
    const place = this.place();
    const session = this.sessionAt(named, place);
    if (!session) {
      throw new Error('There is nothing here to rewrite anew. Ask for a rewrite first.');
    }
    const document = this.sessions.documentOf(session);
    if (document) {
      await this.begin(document, session.instruction, (workDoneToken) =>
        this.server.command('specedit.regenerate', { session: session.id, workDoneToken }),
      );
    }
  }

  private async cancel(named: unknown): Promise<void> {
    const session = this.sessionAt(named, this.place(), (one) => !one.outcome);
    if (session) {
      await this.server.command('specedit.cancelRewrite', { session: session.id });
    }
  }

  // --- deciding

  private async decideOne(named: unknown, verdict: 'accepted' | 'rejected'): Promise<void> {
    const place = this.place();
    const hunk = this.hunkAt(named, place);
    if (!hunk) {
      throw new Error('There is no change here to decide on. It was decided on, or its lines are others now.');
    }
    mustBeDone(hunk.session);
    if (await this.decide([{ session: hunk.session, hunks: [hunk], all: hunk.session.undecided === 1 }], verdict)) {
      this.goOn(place);
    }
  }

  private async decideAll(named: unknown, verdict: 'accepted' | 'rejected'): Promise<void> {
    const place = this.place();
    const { session: name } = namedOf(named);
    const sessions = name
      ? [this.sessionAt(named, place)]
      : place
        ? this.sessions.in(place.document).filter((session) => session.outcome)
        : [];
    const meant = sessions.filter((session) => session !== undefined);
    meant.forEach(mustBeDone);
    const lost = meant.reduce((sum, session) => sum + session.undecided - session.open.length, 0);
    if (verdict === 'accepted' && lost > 0) {
      throw new Error(
        `The text has changed in the place of ${count(lost)}, so none was made. ` +
          'Undo what was changed there, or accept the others one by one.',
      );
    }
    await this.decide(
      meant.map((session) => ({ session, hunks: session.open, all: true })),
      verdict,
    );
  }

  /**
   * Decides on changes of one document, as one step to undo. Gives whether it was done.
   *
   * Edits follow one after the other, each for the text that the one before left.
   */
  private decide(decisions: readonly Decision[], verdict: 'accepted' | 'rejected'): Promise<boolean> {
    const ids = decisions.map(({ session, hunks, all }) => (all ? session.undecidedIds : hunks.map((hunk) => hunk.id)));
    const work = async (): Promise<boolean> => {
      const document = decisions[0] && this.sessions.documentOf(decisions[0].session);
      if (!document) {
        return false;
      }
      const hunks = decisions.flatMap((decision) => decision.hunks);
      if (verdict === 'accepted' && !(await replaceAll(document, hunks))) {
        throw new Error(
          'The text has changed where this belongs, so it was not made. Undo what was changed there, or regenerate.',
        );
      }
      for (const [index, { session, all }] of decisions.entries()) {
        this.sessions.decide(session, ids[index] ?? [], verdict, all);
      }
      if (this.sessions.in(document).length === 0) {
        await this.diffs.close(document.uri);
      }
      return true;
    };
    const edit = this.edits.then(work);
    this.edits = edit.catch(() => undefined);
    return edit;
  }

  // --- looking

  private async showDiff(named: unknown): Promise<void> {
    const place = this.place();
    const hunk = this.hunkAt(named, place);
    const session = hunk?.session ?? this.sessionAt(named, place);
    const document = session && this.sessions.documentOf(session);
    if (!document) {
      throw new Error('There is nothing to show: no rewrite of this file is open. Ask for one first.');
    }
    await this.diffs.show(document, hunk?.range.start.line ?? session.region.first);
  }

  private go(named: unknown, by: 1 | -1): void {
    const place = this.place() ?? this.anyPlace();
    if (!place) {
      return;
    }
    const spans = this.spans(place).filter(({ hunk }) => isNamed(hunk.session, named));
    const line = place.editor.selection.active.line;
    const found =
      by > 0
        ? (spans.find(({ lines }) => lines.first > line) ?? spans[0])
        : (spans.filter(({ lines }) => lines.first < line).at(-1) ?? spans.at(-1));
    if (found) {
      reveal(place.editor, found.lines.first);
    }
  }

  /** After one is decided on, go to the next. */
  private goOn(place: Place | undefined): void {
    if (place && vscode.window.activeTextEditor === place.editor) {
      const next = nearest(this.spans(place), place.editor.selection.active.line);
      if (next) {
        reveal(place.editor, next.lines.first);
      }
    }
  }

  private showEnd({ session, document, end }: Ended): void {
    if (end.outcome === 'ready') {
      const preview = vscode.workspace.getConfiguration('specedit', document).get('rewrite.preview');
      const isDiff = preview === 'diff' || (preview !== 'inline' && !session.open.every(fitsGhosts));
      // Who is writing in it, or elsewhere, goes on.
      if (isDiff && !session.isEdited && vscode.window.activeTextEditor?.document === document) {
        void this.diffs.show(document, session.open[0]?.range.start.line ?? session.region.first);
      }
    } else if (end.outcome !== 'cancelled') {
      void this.offerAgain(session, document, [end.reason, end.fix].filter(Boolean).join('; '));
    }
  }

  private async offerAgain(session: Session, document: vscode.TextDocument, why: string): Promise<void> {
    const again = 'Change Instruction';
    const label = session.label.charAt(0).toUpperCase() + session.label.slice(1);
    const message = withoutLinks(`${label} was not rewritten: ${why}`);
    if ((await vscode.window.showWarningMessage(message, again)) === again && !document.isClosed) {
      const { first, end } = session.region;
      const range = document.validateRange(
        new vscode.Range(first, 0, Math.max(first, end - 1), Number.MAX_SAFE_INTEGER),
      );
      const instruction = await askInstruction(this.history, titleOf(range, document), session.instruction);
      if (instruction) {
        await this.start(document, range, instruction, document.version);
      }
    }
  }

  private showState(changed?: vscode.TextDocument): void {
    if (changed && this.sessions.in(changed).length === 0) {
      void this.diffs.close(changed.uri);
    }
    const place = this.place();
    const here = place ? this.sessions.in(place.document) : [];
    setContext(
      'isRewriting',
      here.some((session) => !session.outcome),
    );
    setContext(
      'hasChanges',
      here.some((session) => session.outcome && session.undecided > 0),
    );
    const all = this.sessions.documents.flatMap((document) => this.sessions.in(document));
    const changes = all.reduce((sum, session) => sum + session.undecided, 0);
    this.status.text = `$(diff) ${count(changes)}`;
    this.status.tooltip = 'Changes that SpecEdit proposes. Click to go to the next one.';
    if (changes > 0) {
      this.status.show();
    } else {
      this.status.hide();
    }
  }

  // --- what is meant

  private place(): Place | undefined {
    const editor = vscode.window.activeTextEditor;
    const document = editor && this.diffs.documentOf(editor.document.uri);
    return editor && document && { editor, document };
  }

  /** Where changes are, if there are none where the user is. */
  private anyPlace(): Place | undefined {
    const editor = vscode.window.visibleTextEditors.find((one) => this.sessions.in(one.document).length > 0);
    return editor && { editor, document: editor.document };
  }

  private sessionAt(
    named: unknown,
    place: Place | undefined,
    isMeant: (session: Session) => boolean = () => true,
  ): Session | undefined {
    const { session: name } = namedOf(named);
    if (name !== undefined) {
      return this.sessions.named(name);
    }
    const sessions = place ? this.sessions.in(place.document).filter(isMeant) : [];
    const regions = sessions.map((session) => ({ session, lines: session.region }));
    return place && nearest(regions, place.editor.selection.active.line)?.session;
  }

  private hunkAt(named: unknown, place: Place | undefined): OpenHunk | undefined {
    const { session: name, id } = namedOf(named);
    if (name !== undefined && id !== undefined) {
      return this.sessions.named(name)?.hunk(id);
    }
    const spans = place ? this.spans(place).filter(({ hunk }) => isNamed(hunk.session, named)) : [];
    return place && nearest(spans, place.editor.selection.active.line)?.hunk;
  }

  private spans({ editor, document }: Place): readonly PlacedHunk[] {
    return this.diffs.places(editor.document.uri, document);
  }
}

/** Runs a command and tells the user what went wrong. */
function told(run: (argument: unknown) => unknown): (argument: unknown) => Promise<void> {
  return async (argument) => {
    try {
      await run(argument);
    } catch (error) {
      void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
    }
  };
}

function mustBeDone(session: Session): void {
  if (!session.outcome) {
    throw new Error('The model is still writing: wait until it is done, or cancel it.');
  }
}

function titleOf({ start, end }: Range, document: vscode.TextDocument, editor?: vscode.TextEditor): string {
  const name = document.uri.path.split('/').pop() ?? '';
  const count = editor?.selections.length ?? 1;
  const which = count > 1 ? ` (the first of ${count} selections)` : '';
  if (start.line === end.line && start.character === end.character) {
    return `Rewrite the function at line ${start.line + 1} of ${name}${which}`;
  }
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return `Rewrite ${start.line + 1 === last ? `line ${last}` : `lines ${start.line + 1}-${last}`} of ${name}${which}`;
}

/** The arguments of a user's own key binding. */
function argumentOf(argument: unknown): { instruction?: string; range?: vscode.Range } {
  const { instruction, range } = fieldsOf(argument);
  return {
    ...(typeof instruction === 'string' && instruction.trim() ? { instruction } : {}),
    ...(range === undefined ? {} : { range: toRange(readRange(range)) }),
  };
}

function namedOf(argument: unknown): Named {
  const { session, id } = fieldsOf(argument);
  return {
    ...(typeof session === 'string' ? { session } : {}),
    ...(typeof id === 'number' ? { id } : {}),
  };
}

function isNamed(session: Session, argument: unknown): boolean {
  const { session: name } = namedOf(argument);
  return name === undefined || session.id === name;
}

function percentOf(value: unknown): number | undefined {
  const { percentage } = fieldsOf(value);
  return typeof percentage === 'number' ? Math.min(100, Math.round(percentage)) : undefined;
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function reveal(editor: vscode.TextEditor, line: number): void {
  const place = new vscode.Position(Math.min(line, editor.document.lineCount - 1), 0);
  editor.selection = new vscode.Selection(place, place);
  editor.revealRange(new vscode.Range(place, place), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

function setContext(key: string, value: boolean): void {
  void vscode.commands.executeCommand('setContext', `specedit.${key}`, value);
}
