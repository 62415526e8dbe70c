import * as vscode from 'vscode';
import type { Server } from './client';
import {
  type Hunk,
  type RewriteEnd,
  readHunk,
  readHunkRemoved,
  readRebased,
  readRewrite,
  readRewriteEnd,
} from './protocol';
import { type OpenHunk, Session } from './session';

/** How a rewrite ended, and in which document. */
export interface Ended {
  readonly session: Session;
  readonly document: vscode.TextDocument;
  readonly end: RewriteEnd;
}

type Verdict = 'accepted' | 'rejected';

const COMMANDS = {
  accepted: { one: 'specedit.acceptHunk', every: 'specedit.acceptAll' },
  rejected: { one: 'specedit.rejectHunk', every: 'specedit.rejectAll' },
} as const;

interface Rewritten {
  readonly session: Session;
  readonly document: vscode.TextDocument;
}

/** The rewrites of open documents: they follow what the server tells and what becomes of the documents. */
export class Sessions implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.TextDocument>();
  private readonly ended = new vscode.EventEmitter<Ended>();
  private readonly lost = new vscode.EventEmitter<number>();
  private rewritten: Rewritten[] = [];
  private untold: { session: string; tell: () => void }[] = [];
  private readonly registrations: vscode.Disposable[];

  /** What is proposed in a document is another now, or elsewhere. */
  readonly onDidChange = this.changed.event;
  /** The model has ended. */
  readonly onDidEnd = this.ended.event;
  /** The server has stopped, with so many rewrites that were to be decided on. */
  readonly onDidLose = this.lost.event;

  constructor(private readonly server: Server) {
    this.registrations = [
      this.changed,
      this.ended,
      this.lost,
      server.onNotification('specedit/hunk', (params) => this.tell(readHunk(params), this.placeHunk)),
      server.onNotification('specedit/hunkRemoved', (params) =>
        this.tell(readHunkRemoved(params), ({ session }, { id }) => session.remove(id)),
      ),
      server.onNotification('specedit/rebased', (params) =>
        this.tell(readRebased(params), ({ session }, rebased) => session.rebase(rebased)),
      ),
      server.onNotification('specedit/rewriteEnd', (params) =>
        this.tell(readRewriteEnd(params), (rewritten, end) => this.endOne(rewritten, end)),
      ),
      server.onDidStop(() => this.loseAll()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) {
          this.follow(document, contentChanges);
        }
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.drop((one) => one.document === document)),
    ];
  }

  /**
   * Begins a rewrite.
   *
   * @param ask - has the server begin, and gives its answer.
   * @throws an Error of the server's for the user.
   */
  async begin(document: vscode.TextDocument, instruction: string, ask: () => Promise<unknown>): Promise<Session> {
    const session = new Session(instruction, document.version, document.getText());
    const rewritten = { session, document };
    this.rewritten.push(rewritten);
    try {
      session.begin(readRewrite(await ask()));
    } catch (error) {
      this.drop((one) => one === rewritten);
      throw error;
    }
    this.drop((one) => one !== rewritten && one.document === document && isReplaced(one.session, session));
    const early = this.untold.filter((message) => message.session === session.id);
    this.untold = [];
    for (const { tell } of early) {
      tell();
    }
    this.changed.fire(document);
    return session;
  }

  /** The rewrites of a document that are under way or to be decided on. */
  in(document: vscode.TextDocument): Session[] {
    return this.rewritten
      .filter((one) => one.document === document && one.session.id && isShown(one.session))
      .map((one) => one.session);
  }

  /** The open changes in a document, from the top. */
  open(document: vscode.TextDocument): OpenHunk[] {
    return this.in(document)
      .flatMap((session) => session.open)
      .sort((one, other) => one.range.start.line - other.range.start.line);
  }

  /** A rewrite by the server's name of it. */
  named(id: string): Session | undefined {
    return this.rewritten.find((one) => one.session.id === id)?.session;
  }

  /** Where a rewrite is; undefined where that was closed. */
  documentOf(session: Session): vscode.TextDocument | undefined {
    return this.rewritten.find((one) => one.session === session)?.document;
  }

  /** The documents with rewrites that are under way or to be decided on. */
  get documents(): vscode.TextDocument[] {
    const all = this.rewritten.filter((one) => isShown(one.session)).map((one) => one.document);
    return [...new Set(all)];
  }

  /** What became of changes of a rewrite, or of `all` that were open; the server counts it. */
  decide(session: Session, ids: readonly number[], verdict: Verdict, all: boolean): void {
    session.decide(ids, verdict);
    const { one, every } = COMMANDS[verdict];
    const told = all ? [this.server.command(every, { session: session.id })] : [];
    const each = all ? [] : ids.map((id) => this.server.command(one, { session: session.id, id }));
    for (const answer of [...told, ...each]) {
      // What the user decided holds, counted or not.
      answer.catch(() => undefined);
    }
    this.tellChange(session);
  }

  /** Something that is shown of a rewrite is another. */
  tellChange(session: Session): void {
    const found = this.rewritten.find((one) => one.session === session);
    if (found) {
      this.changed.fire(found.document);
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }

  private tell<T extends { readonly session: string }>(
    message: T,
    handle: (rewritten: Rewritten, message: T) => void,
  ): void {
    const found = this.rewritten.find((one) => one.session.id === message.session);
    if (found) {
      handle(found, message);
      this.changed.fire(found.document);
    } else if (this.rewritten.some((one) => !one.session.id)) {
      // It came before the answer that says whose it is.
      this.untold.push({ session: message.session, tell: () => this.tell(message, handle) });
    }
  }

  private readonly placeHunk = ({ session }: Rewritten, hunk: Hunk): void => session.place(hunk);

  private endOne({ session, document }: Rewritten, end: RewriteEnd): void {
    session.end(end.outcome);
    this.ended.fire({ session, document, end });
  }

  private follow(document: vscode.TextDocument, changes: readonly vscode.TextDocumentContentChangeEvent[]): void {
    const here = this.rewritten.filter((one) => one.document === document);
    for (const { session } of here) {
      session.follow(document.version, changes);
    }
    if (here.length > 0) {
      this.changed.fire(document);
    }
  }

  private loseAll(): void {
    const count = this.rewritten.filter((one) => isShown(one.session)).length;
    this.drop(() => true);
    if (count > 0) {
      this.lost.fire(count);
    }
  }

  private drop(isDropped: (one: Rewritten) => boolean): void {
    const dropped = this.rewritten.filter(isDropped);
    this.rewritten = this.rewritten.filter((one) => !dropped.includes(one));
    for (const { document } of dropped) {
      this.changed.fire(document);
    }
  }
}

function isShown(session: Session): boolean {
  return !session.outcome || session.undecided > 0;
}

/** Whether a rewrite that begins makes another one old: it is over, or of the same lines. */
function isReplaced(old: Session, { region }: Session): boolean {
  return !isShown(old) || (old.region.first < region.end && region.first < old.region.end);
}
