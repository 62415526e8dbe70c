/**
 * Text of others' making, such as a file's or an engine's, as part of a message.
 *
 * VS Code makes links of `[text](command:...)` in a message, and one click on such a link runs any command there is.
 */
export function withoutLinks(text: string): string {
  return text.replaceAll('](', ']\u200b(');
}
