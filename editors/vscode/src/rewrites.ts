import * as vscode from 'vscode'
import type { Server } from './client'

/** Rewriting: its commands, previews and edits. Everything ends with what is returned. */
export function register(_context: vscode.ExtensionContext, _server: Server): vscode.Disposable {
  return vscode.Disposable.from()
}
