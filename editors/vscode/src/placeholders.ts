import { join } from 'node:path';

/** What placeholders in settings stand for. */
export interface Places {
  readonly home: string;
  /** The first folder that is open; null where none is. */
  readonly workspaceFolder: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * A path of a setting with `~`, `${userHome}`, `${workspaceFolder}` and `${env:NAME}` filled in.
 *
 * A variable that is not set is empty; `${workspaceFolder}` stays where no folder is open, and so names no file.
 */
export function filledIn(path: string, places: Places): string {
  const filled = path
    .trim()
    .replace(/\$\{(userHome|workspaceFolder|env:([^}]*))\}/g, (all, name: string, variable: string | undefined) => {
      if (variable !== undefined) {
        return places.env[variable] ?? '';
      }
      return name === 'userHome' ? places.home : (places.workspaceFolder ?? all);
    });
  return /^~(?=$|[\\/])/.test(filled) ? join(places.home, filled.slice(1)) : filled;
}
