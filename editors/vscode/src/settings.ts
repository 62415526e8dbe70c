/** The server's options among the settings, and which of them go where. No `vscode` in here: it is what is tested. */

/** Those that only the user may set; they go to the server when it is started, and never again. */
export const OWN_OPTIONS = [
  'engine',
  'model',
  'warmUp',
  'idleExitMinutes',
  'logFile',
  'logLevel',
  'rewrite.allowDeletions',
  'rewrite.allowSyntaxErrors',
  'rewrite.confirm',
] as const;

/** Those that a workspace may set too, and each folder of it for itself; the server asks for them. */
export const FOLDER_OPTIONS = [
  'inline.enabled',
  'inline.debounceMs',
  'inline.maxNewTokens',
  'inline.invokedMaxNewTokens',
  'inline.alternatives',
  'inline.prefixTokens',
  'inline.suffixTokens',
  'inline.contextTokens',
  'inline.multiLine',
  'rewrite.maxNewTokens',
  'rewrite.temperature',
  'nextEdit.enabled',
  'nextEdit.model',
] as const;

/** Settings for which the server has to be started anew. */
export const RESTARTING = [...OWN_OPTIONS, 'server.path', 'server.interpreter', 'server.environment'].map(
  (key) => `specedit.${key}`,
);

/** Options as the server takes them. */
export interface Options {
  [name: string]: unknown;
}

/**
 * The options that are set, nested as their names are: `{'inline.enabled': true}` is `{inline: {enabled: true}}`.
 *
 * @param keys names of settings without `specedit.`
 * @param value what a setting is; null and empty texts count as not set
 */
export function nested(keys: readonly string[], value: (key: string) => unknown): Options {
  const options: Options = {};
  for (const key of keys) {
    const found = value(key);
    if (found === undefined || found === null || found === '') {
      continue;
    }
    const [group, name] = key.split('.', 2) as [string, string | undefined];
    if (name === undefined) {
      options[group] = found;
    } else {
      options[group] = { ...(options[group] as Options | undefined), [name]: found };
    }
  }
  return options;
}

/** Environment variables as a setting gives them; what is no text is left out. */
export function environment(given: unknown): Readonly<Record<string, string>> {
  const entries = typeof given === 'object' && given !== null ? Object.entries(given) : [];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
