import * as vscode from 'vscode'
import type { Server } from './client'

/** The next edit: shown where it would be made, and made on demand. Everything ends with what is returned. */
export function register(_context: vscode.ExtensionContext, _server: Server): vscode.Disposable {
  return vscode.Disposable.from()
}
