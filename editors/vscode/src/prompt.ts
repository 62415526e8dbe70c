import * as vscode from 'vscode';
import { type History, type Offered, offered } from './history';

interface Item extends vscode.QuickPickItem, Offered {}

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
    pick.items = offered(history.instructions, pick.value).map(itemOf);
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

function itemOf({ instruction, typed }: Offered): Item {
  const icon = instruction === typed ? 'sparkle' : 'history';
  // A name of an icon in an instruction is to be read as it stands.
  const label = `$(${icon}) ${instruction.replaceAll('$(', '$\u200b(')}`;
  // What is offered is chosen already: the editor would leave out and sort by a likeness of its own.
  return { label, instruction, typed, alwaysShow: true };
}
