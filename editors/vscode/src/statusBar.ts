import * as vscode from 'vscode';
import { type Appearance, appearance, type Trouble } from './appearance';
import { withoutLinks } from './messageText';
import { readStatus, type Status } from './protocol';
import type { Supervisor } from './supervisor';

const IN_TOOLTIP = [
  ['Rewrite', 'specedit.rewriteSelection'],
  ['Completions on/off', 'specedit.toggle'],
  ['Statistics', 'specedit.showStatistics'],
  ['Log', 'specedit.showLog'],
] as const;

/** The item in the status bar; a click on it gives what can be done, or what mends what is wrong. */
export function register(_context: vscode.ExtensionContext, server: Supervisor): vscode.Disposable {
  const item = vscode.window.createStatusBarItem('specedit.status', vscode.StatusBarAlignment.Right, 100);
  item.name = 'SpecEdit';
  item.command = 'specedit.showMenu';
  let engine: Status | null = null;
  let shown = now();

  function now(): Appearance {
    return appearance(server.state, engine, isCompleting());
  }

  function show(): void {
    shown = now();
    item.text = shown.text;
    item.tooltip = tooltip(shown);
    item.backgroundColor = shown.trouble ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    item.accessibilityInformation = { label: `SpecEdit ${shown.heading}. ${shown.detail}`, role: 'button' };
    item.show();
  }

  show();
  return vscode.Disposable.from(
    item,
    server.onNotification('specedit/status', (params) => {
      engine = readStatus(params);
      show();
      setContext('specedit.hasModel', engine.state === 'ready' && engine.model !== '');
    }),
    server.onDidChangeState((state) => {
      if (state.kind === 'starting') {
        engine = null;
      }
      show();
      setContext('specedit.isRunning', server.isRunning);
      if (shown.trouble !== null) {
        void tell(shown.trouble);
      }
    }),
    vscode.window.onDidChangeActiveTextEditor(show),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('specedit.inline.enabled')) {
        show();
      }
    }),
    vscode.commands.registerCommand('specedit.toggle', toggle),
    vscode.commands.registerCommand('specedit.showMenu', () => (shown.trouble ? tell(shown.trouble) : menu(shown))),
  );
}

function setContext(key: string, value: boolean): void {
  void vscode.commands.executeCommand('setContext', key, value);
}

async function tell({ message, remedies }: Trouble): Promise<void> {
  const title = await vscode.window.showErrorMessage(withoutLinks(message), ...remedies.map((remedy) => remedy.title));
  const remedy = remedies.find((each) => each.title === title);
  if (remedy !== undefined) {
    await vscode.commands.executeCommand(remedy.command, remedy.argument);
  }
}

async function menu({ heading, model }: Appearance): Promise<void> {
  const items = [
    { label: '$(sparkle) Rewrite...', command: 'specedit.rewriteSelection' },
    {
      label: isCompleting() ? '$(circle-slash) Turn completions off' : '$(check) Turn completions on',
      command: 'specedit.toggle',
    },
    { label: '$(graph) Show statistics', command: 'specedit.showStatistics' },
    { label: '$(output) Show log', command: 'specedit.showLog' },
    { label: '$(gear) Open settings', command: 'workbench.action.openSettings', argument: '@ext:specedit.specedit' },
    { label: '$(debug-restart) Restart', command: 'specedit.restart' },
    { label: '$(book) Open walkthrough', command: 'specedit.openWalkthrough' },
  ];
  const title = model ? `SpecEdit ${heading}, with ${model}` : `SpecEdit ${heading}`;
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder: 'What to do' });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command, chosen.argument);
  }
}

function tooltip({ heading, detail, model }: Appearance): vscode.MarkdownString {
  const text = new vscode.MarkdownString(`**SpecEdit** ${heading}\n\n`, true);
  if (model) {
    text.appendMarkdown('Model: ').appendText(model).appendMarkdown('\n\n');
  }
  if (detail) {
    text.appendText(detail).appendMarkdown('\n\n');
  }
  text.appendMarkdown(`${IN_TOOLTIP.map(([title, command]) => `[${title}](command:${command})`).join(' · ')}\n`);
  text.isTrusted = { enabledCommands: IN_TOOLTIP.map(([, command]) => command) };
  return text;
}

/** Where completions are set for the document that is looked at, or would be. */
function completions(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration('specedit.inline', vscode.window.activeTextEditor?.document);
}

function isCompleting(): boolean {
  return completions().get('enabled', true);
}

/** Turns completions on or off, in the same place where that was set before. */
async function toggle(): Promise<void> {
  const set = completions().inspect<boolean>('enabled');
  const target =
    set?.workspaceFolderValue !== undefined
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : set?.workspaceValue !== undefined
        ? vscode.ConfigurationTarget.Workspace
        : vscode.ConfigurationTarget.Global;
  await completions().update('enabled', !isCompleting(), target);
}
