import * as vscode from 'vscode';
import type { History } from './history';

interface Item extends vscode.QuickPickItem {
  readonly instruction: string;
  /** What had been typed when it was offered. */
  readonly typed: string;
}

const forget: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon('clear-all'),
  tooltip: 'Forget all earlier instructions',
};

/**
 * Asks for an instruction: a new one, or one of the earlier ones. Gives undefined where the user leaves.
 *
 * @param title - says what is rewritten.
 * @param value - what stands there at the beginning.
 */
export async function askInstruction(history: History, title: string, value = ''): Promise<string | undefined> {
  const pick = vscode.window.createQuickPick<Item>();
  pick.title = title;
  pick.placeholder = 'What to change, such as: Raise ValueError if rate is negative';
  pick.value = value;
  pick.ignoreFocusOut = true;
  const show = (): void => {
    pick.items = offered(history.instructions, pick.value);
    pick.buttons = history.instructions.length > 0 ? [forget] : [];
  };
  show();
  const instruction = await new Promise<string | undefined>((resolve) => {
    pick.onDidChangeValue(show);
    pick.onDidTriggerButton(async () => {
      await history.clear();
      show();
    });
    pick.onDidAccept(() => {
      const [active] = pick.activeItems;
      const typed = pick.value.trim();
      // Who types fast is ahead of the list, and means what is typed.
      const chosen = active?.typed === typed ? active.instruction : typed;
      if (chosen) {
        resolve(chosen);
      }
    });
    pick.onDidHide(() => resolve(undefined));
    pick.show();
  });
  pick.dispose();
  if (instruction) {
    await history.add(instruction);
  }
  return instruction;
}

/** What can be chosen: what is typed first, then the earlier instructions that hold all its words. */
export function offered(instructions: readonly string[], value: string): Item[] {
  const typed = value.trim();
  const words = typed.toLowerCase().split(/\s+/);
  const earlier = instructions.filter(
    (instruction) => instruction !== typed && words.every((word) => instruction.toLowerCase().includes(word)),
  );
  const item = (icon: string, instruction: string): Item => ({
    // A name of an icon in an instruction is to be read as it stands.
    label: `$(${icon}) ${instruction.replaceAll('$(', '$\u200b(')}`,
    instruction,
    typed,
    // What is offered is chosen here: the editor would leave out and sort by a likeness of its own.
    alwaysShow: true,
  });
  return [...(typed ? [item('sparkle', typed)] : []), ...earlier.map((instruction) => item('history', instruction))];
}
