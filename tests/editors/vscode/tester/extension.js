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

  /** The titles of the code lenses of the active document, with their lines. */
  async lenses() {
    const { uri } = vscode.window.activeTextEditor.document
    const lenses = await vscode.commands.executeCommand('vscode.executeCodeLensProvider', uri, 100)
    return lenses.map((lens) => ({ line: lens.range.start.line, title: lens.command?.title, command: lens.command }))
  },

  /** Selects from one [line, character] to another in the active editor. */
  select(from, to = from) {
    const editor = vscode.window.activeTextEditor
    editor.selection = new vscode.Selection(new vscode.Position(...from), new vscode.Position(...to))
    editor.revealRange(editor.selection)
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
