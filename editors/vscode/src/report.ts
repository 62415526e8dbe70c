import type { Counters, Statistics } from './protocol';

const TITLES = [
  ['Completions', 'inline'],
  ['Rewrites', 'rewrite'],
  ['Next edits', 'nextEdit'],
  ['All', 'total'],
] as const;

/** What was shown and taken, and what it cost, as a page of Markdown. */
export function report(statistics: Statistics): string {
  return [
    '# SpecEdit: statistics',
    '',
    ...statistics.summary.trim().split('\n').map(escaped).join('  \n').split('\n'),
    '',
    '| | shown | accepted | rejected | characters taken | answers | tokens | tokens a forward | seconds |',
    '|---|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...TITLES.map(([title, kind]) => row(title, statistics[kind])),
    '',
    'Counted since the server started, in its memory alone: nothing is written to a file or sent anywhere.',
    'VS Code does not tell which completions it shows; those that it was given in time count as shown.',
    '',
  ].join('\n');
}

function row(title: string, counted: Counters): string {
  const { shown, accepted, rejected, acceptedChars, answers, outputTokens, tokensPerForward, seconds } = counted;
  const share = shown > 0 ? ` (${Math.round((100 * accepted) / shown)}%)` : '';
  const ratio = tokensPerForward === null ? '' : tokensPerForward.toFixed(1);
  const cells = [
    title,
    shown,
    `${accepted}${share}`,
    rejected,
    acceptedChars,
    answers,
    outputTokens,
    ratio,
    seconds.toFixed(1),
  ];
  return `| ${cells.join(' | ')} |`;
}

function escaped(line: string): string {
  return line.replace(/[\\`*_{}[\]<>#|]/g, '\\$&');
}
