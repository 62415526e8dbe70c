"""Six edits of our own: a rename, a new parameter, a fix, a removal, a move, a new section."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """A file before and after what the instruction asks for."""

    path: str
    instruction: str
    before: str
    after: str


_INVOICE = '''\
"""Invoices: what was sold, what is owed."""

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Line:
    """One article on an invoice."""

    article: str
    amount: int
    price: Decimal

    def total(self) -> Decimal:
        return self.amount * self.price


@dataclass
class Invoice:
    """All articles that one customer has bought."""

    customer: str
    lines: list[Line] = field(default_factory=list)

    def add(self, article: str, amount: int, price: Decimal) -> None:
        if amount < 1:
            raise ValueError(f"amount must be at least 1, not {amount}")
        self.lines.append(Line(article, amount, price))

    def total(self) -> Decimal:
        return sum((line.total() for line in self.lines), Decimal(0))

    def summary(self) -> str:
        rows = [f"{line.amount} x {line.article}: {line.total()}" for line in self.lines]
        return "\\n".join([self.customer, *rows, f"total: {self.total()}"])
'''

_QUEUE = """\
export class Queue {
  constructor(limit) {
    this.limit = limit;
    this.items = [];
    this.waiting = [];
  }

  get size() {
    return this.items.length;
  }

  push(item) {
    if (this.items.length >= this.limit) {
      throw new Error("the queue is full");
    }
    const next = this.waiting.shift();
    if (next) {
      next(item);
    } else {
      this.items.push(item);
    }
  }

  pop() {
    if (this.items.length > 0) {
      return Promise.resolve(this.items.shift());
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  clear() {
    this.items = [];
  }
}
"""

_MEDIAN = """\
package stats

import "sort"

// Mean returns the arithmetic mean, 0 of no values.
func Mean(values []float64) float64 {
\tif len(values) == 0 {
\t\treturn 0
\t}
\tsum := 0.0
\tfor _, value := range values {
\t\tsum += value
\t}
\treturn sum / float64(len(values))
}

// Median returns the middle value, 0 of no values.
func Median(values []float64) float64 {
\tif len(values) == 0 {
\t\treturn 0
\t}
\tsorted := append([]float64(nil), values...)
\tsort.Float64s(sorted)
\tmiddle := len(sorted) / 2
\treturn sorted[middle]
}
"""

_COUNTER = """\
use std::collections::HashMap;

/// Counts words.
pub struct Counter {
    counts: HashMap<String, usize>,
    verbose: bool,
}

impl Counter {
    pub fn new() -> Self {
        Counter { counts: HashMap::new(), verbose: false }
    }

    pub fn add(&mut self, word: &str) {
        if self.verbose {
            println!("adding {word}");
        }
        *self.counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }

    pub fn add_all(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.add(word.trim_matches(|c: char| !c.is_alphanumeric()));
        }
    }

    pub fn get(&self, word: &str) -> usize {
        self.counts.get(&word.to_lowercase()).copied().unwrap_or(0)
    }

    pub fn most_common(&self, limit: usize) -> Vec<(&str, usize)> {
        let mut pairs: Vec<_> = self.counts.iter().map(|(word, count)| (word.as_str(), *count)).collect();
        pairs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        pairs.truncate(limit);
        pairs
    }
}
"""

_HELPERS = {
    "slug": '''\
def slug(title):
    """A title as it stands in a URL."""
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    return "-".join(words)
''',
    "shorten": '''\
def shorten(text, width, mark="..."):
    """At most `width` characters of a text."""
    if len(text) <= width:
        return text
    return text[: max(0, width - len(mark))] + mark
''',
    "indent": '''\
def indent(text, blanks):
    """A text with blanks before each line that is not empty."""
    lines = text.split("\\n")
    return "\\n".join(" " * blanks + line if line else line for line in lines)
''',
    "columns": '''\
def columns(rows, gap=2):
    """Rows of strings as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths))
        yield (" " * gap).join(cells).rstrip()
''',
}

_README = """\
# weather

Asks a station for the weather and keeps what it said.

## Install

```sh
pip install weather
```

## Use

```sh
weather ask --station north
weather list --days 7
```

A station answers within 10 seconds or is taken to be down. What it said is kept in `~/.weather`, one file a day.

## Stations

| name | where | every |
|---|---|---|
| north | on the roof | 5 minutes |
| south | in the garden | 15 minutes |

## Licence

MIT
"""

_CONFIGURE = """\
## Configure

```toml
[stations]
timeout_seconds = 10
```

"""


def _in_order(*names: str) -> str:
    return "\n\n".join(_HELPERS[name] for name in names)


OWN_EDITS = [
    Edit("invoice.py", "Rename amount to quantity", _INVOICE, _INVOICE.replace("amount", "quantity")),
    Edit(
        "queue.js",
        "Let the constructor take a name and say it in the error",
        _QUEUE,
        _QUEUE.replace("constructor(limit) {", "constructor(limit, name) {\n    this.name = name;").replace(
            'new Error("the queue is full")', "new Error(`the queue ${this.name} is full`)"
        ),
    ),
    Edit(
        "stats.go",
        "The median of an even number of values is the mean of the two in the middle",
        _MEDIAN,
        _MEDIAN.replace(
            "\treturn sorted[middle]\n",
            "\tif len(sorted)%2 == 0 {\n\t\treturn (sorted[middle-1] + sorted[middle]) / 2\n\t}\n"
            "\treturn sorted[middle]\n",
        ),
    ),
    Edit(
        "counter.rs",
        "Remove verbose",
        _COUNTER,
        _COUNTER.replace("    verbose: bool,\n", "")
        .replace(", verbose: false", "")
        .replace('        if self.verbose {\n            println!("adding {word}");\n        }\n', ""),
    ),
    Edit(
        "text.py",
        "Move columns to the top",
        _in_order("slug", "shorten", "indent", "columns"),
        _in_order("columns", "slug", "shorten", "indent"),
    ),
    Edit("README.md", "Say how to configure it", _README, _README.replace("## Stations", _CONFIGURE + "## Stations")),
]
