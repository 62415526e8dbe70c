'use strict'

// What a test sends over a socket runs here, in the extension host: a line of JSON {code, args} is the body of an
// async function of `vscode`, `args` and `tools`; the answer is a line {value} or {error}.

const fs = require('node:fs')
const net = require('node:net')
const readline = require('node:readline')
const vscode = require('vscode')

const AsyncFunction = (async () => {}).constructor
const millisecondsBetweenLooks = 50

/** What tests need and the API says in many words. */
const tools = {
  /** Waits until `condition` gives something, and gives that; an error after `seconds`. */
  async until(condition, seconds = 60) {
    const end = Date.now() + seconds * 1000
    for (;;) {
      const found = await condition()
      if (found) return found
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${condition}`)
      await new Promise((resume) => setTimeout(resume, millisecondsBetweenLooks))
    }
  },

  /** Opens a file, alone and as it is on the disk: it is `tools.document` from then on. */
  async open(path) {
    for (const document of vscode.workspace.textDocuments.filter((each) => each.isDirty)) {
      await vscode.window.showTextDocument(document)
      await vscode.commands.executeCommand('workbench.action.files.revert')
    }
    await vscode.commands.executeCommand('workbench.action.closeAllEditors')
    tools.document = await vscode.workspace.openTextDocument(path)
    await vscode.window.showTextDocument(tools.document, { preview: false })
    // What was open a moment ago may still have the text of then.
    const onDisk = () => fs.readFileSync(path, 'utf8')
    await tools.until(() => tools.text().replaceAll('\r', '') === onDisk().replaceAll('\r', ''))
  },

  /** The text of the document that was opened last. */
  text: () => tools.document.getText(),

  /** The commands behind its code lenses, from top to bottom. */
  async lenses() {
    const { uri } = tools.document
    const lenses = await vscode.commands.executeCommand('vscode.executeCodeLensProvider', uri, 100)
    const ordered = lenses.sort((one, other) => one.range.start.compareTo(other.range.start))
    return ordered.map((lens) => lens.command?.command ?? '')
  },

  /** Inserts text into it, as if it were typed there. */
  async insert(line, character, text) {
    const edit = new vscode.WorkspaceEdit()
    edit.insert(tools.document.uri, new vscode.Position(line, character), text)
    await vscode.workspace.applyEdit(edit)
  },

  /** Selects from one [line, character] to another in the active editor. */
  async select(from, to = from) {
    const editor = vscode.window.activeTextEditor
    editor.selection = new vscode.Selection(new vscode.Position(...from), new vscode.Position(...to))
    editor.revealRange(editor.selection)
    // The window does one after the other: what comes back says that it has selected.
    await vscode.commands.executeCommand('setContext', 'tester.hasSelected', true)
  },
}

async function answer(line) {
  const { code, args } = JSON.parse(line)
  try {
    const value = await new AsyncFunction('vscode', 'args', 'tools', code)(vscode, args, tools)
    return { value: value ?? null }
  } catch (error) {
    return { error: String(error?.stack ?? error) }
  }
}

exports.activate = (context) => {
  const server = net.createServer((connection) => {
    readline.createInterface({ input: connection }).on('line', async (line) => {
      connection.write(JSON.stringify(await answer(line)) + '\n')
    })
    connection.on('error', () => {})
  })
  const path = process.env.SPECEDIT_TESTER_SOCKET
  fs.rmSync(path, { force: true })
  server.listen(path)
  context.subscriptions.push({ dispose: () => server.close() })
}
