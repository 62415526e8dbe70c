const MOST_CHARS = 160;

/** The room between a line and what is shown after it. */
export const MARGIN = '0 0 0 2ch';

/** New lines as far as one line has room for them: its sign, the first of them, and how many more there are. */
export function shownLine(sign: string, lines: readonly string[]): string {
  const [first = '', ...rest] = lines;
  const text = first.trim();
  const shown = text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}\u2026` : text;
  const more = rest.length > 0 ? `  (and ${rest.length} more ${rest.length === 1 ? 'line' : 'lines'})` : '';
  return `${sign} ${shown}${more}`;
}
