import type { Lines } from '../../src/lines';
import type { Position } from '../../src/protocol';

/** What tests draw by chance; a seed gives the same again. */
export interface Random {
  /** A whole number from 0 up to below `end`. */
  below(end: number): number;
  /** One of these. */
  of<T>(items: readonly T[]): T;
  /** A text of fewer than `lines` lines that are likely to be alike. */
  text(lines: number): string;
  /** A place in a text. */
  place(lines: Lines): Position;
}

/** Runs a test so many times, each with another seed; an error says with which. */
export function randomly(times: number, run: (random: Random) => void): void {
  for (let seed = 1; seed <= times; seed += 1) {
    try {
      run(seeded(seed));
    } catch (error) {
      throw new Error(`with seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }
}

function seeded(seed: number): Random {
  let state = seed;
  // Mulberry32.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  const of = <T>(items: readonly T[]): T => {
    const item = items[below(items.length)];
    if (item === undefined) {
      throw new Error('there is nothing to draw from');
    }
    return item;
  };
  return {
    below,
    of,
    text: (lines) => Array.from({ length: below(lines) + 1 }, () => of(['', 'a', 'b', 'ab', '  a'])).join('\n'),
    place: (lines) => {
      const line = below(lines.count);
      return { line, character: below(lines.at(line).length + 1) };
    },
  };
}
