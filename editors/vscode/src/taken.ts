/** A completion on the screen: its text, where that begins, and how much of it stands in the document. */
export interface Offered {
  readonly text: string;
  readonly offset: number;
  readonly length: number;
}

/** A change of the document, by offsets in the text before it. */
export interface Change {
  readonly rangeOffset: number;
  readonly rangeLength: number;
  readonly text: string;
}

/**
 * How much of a completion stands in the document after a change; null where the change is another one.
 *
 * Of `return total`, with `ret` in the document, a change that inserts `urn` leaves 6. An editor may put in place all
 * that it takes, `return`, or only what is new of it.
 */
export function takenLength({ text, offset, length }: Offered, change: Change): number | null {
  const begin = change.rangeOffset - offset;
  const isUpToHere = begin >= 0 && begin + change.rangeLength === length;
  const end = begin + change.text.length;
  return isUpToHere && end > length && text.slice(begin, end) === change.text ? end : null;
}
