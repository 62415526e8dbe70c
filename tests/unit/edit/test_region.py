import subprocess
import sys
from pathlib import Path

import pytest

from specedit.edit.document import Document, Span
from specedit.edit.region import line_range, symbol, whole_file
from specedit.edit.syntax import GRAMMARS, language_of, parses
from specedit.errors import UsageError

SOURCES = {
    "a.py": """\
# 😀 licence
@decorated
class Box:
    face = "😀😀"

    @property
    def size(self):
        return 1

    async def open(self): pass  # at once

# not a doc comment
def outer():
    def inner(): pass
    return inner
""",
    "a.js": """\
/** Doc. */
export const arrow = () => {
};

// far away

// Near.
export default class Box {
  // Size.
  static size() {}
  #hidden = () => 1;
}
const api = {
  get() {},
  put: () => 1,
};
Box.prototype.late = function () {
};
function left(){} function right(){}
""",
    "a.tsx": """\
@Component()
export class Box<T> {
  @Input()
  size(): number { return 1; }
}
export interface Shape {
  a: number;
}
export const View = () => <div/>;
namespace Inner {
  export function deep() {}
}
""",
    "a.go": """\
package a

// Box holds.
type Box struct {
	x int
}

// Size says.
func (b *Box) Size() int { return 1 }
func (m Map[K, V]) Get() {}
type (
	One int
	// Two is two.
	Two string
)
""",
    "a.rs": """\
/// Holds.
#[derive(Debug)]
pub struct Box;

impl Box {
    /// Says.
    #[inline]
    pub fn size(&self) {}
}
impl<T> fmt::Display for a::Map<T> {
    fn fmt(&self) {}
}
mod inner {
    fn deep() {}
}
""",
    "a.c": """\
/* Doc. */
static char *name(int a)
{
  return 0;
}
struct box { int x; };
typedef struct shape { int y; } shape;
#define SQUARE(x) \\
  ((x) * (x))
int size(void) { return 1; } // tail
""",
}


@pytest.mark.parametrize(
    ("file", "name", "label", "lines"),
    [
        ("a.py", "Box", "class Box", (2, 10)),
        ("a.py", "Box.size", "function Box.size", (6, 8)),
        ("a.py", "size", "function Box.size", (6, 8)),
        ("a.py", "Box.open", "function Box.open", (10, 10)),
        ("a.py", "outer", "function outer", (13, 15)),
        ("a.py", "outer.inner", "function outer.inner", (14, 14)),
        ("a.js", "arrow", "function arrow", (1, 3)),
        ("a.js", "Box", "class Box", (7, 12)),
        ("a.js", "Box.size", "method Box.size", (9, 10)),
        ("a.js", "Box.#hidden", "method Box.#hidden", (11, 11)),
        ("a.js", "api", "object api", (13, 16)),
        ("a.js", "api.get", "method api.get", (14, 14)),
        ("a.js", "api.put", "function api.put", (15, 15)),
        ("a.js", "Box.prototype.late", "function Box.prototype.late", (17, 18)),
        ("a.tsx", "Box", "class Box", (1, 5)),
        ("a.tsx", "Box.size", "method Box.size", (3, 4)),
        ("a.tsx", "Shape", "interface Shape", (6, 8)),
        ("a.tsx", "View", "function View", (9, 9)),
        ("a.tsx", "Inner.deep", "function Inner.deep", (11, 11)),
        ("a.go", "Box", "type Box", (3, 6)),
        ("a.go", "Box.Size", "method Box.Size", (8, 9)),
        ("a.go", "Map.Get", "method Map.Get", (10, 10)),
        ("a.go", "Two", "type Two", (13, 14)),
        ("a.rs", "Box", "struct Box", (1, 3)),
        ("a.rs", "Box::size", "function Box.size", (6, 8)),
        ("a.rs", "Map.fmt", "function Map.fmt", (11, 11)),
        ("a.rs", "inner.deep", "function inner.deep", (14, 14)),
        ("a.c", "name", "function name", (1, 5)),
        ("a.c", "box", "struct box", (6, 6)),
        ("a.c", "shape", "type shape", (7, 7)),
        ("a.c", "SQUARE", "macro SQUARE", (8, 9)),
        ("a.c", "size", "function size", (10, 10)),
    ],
)
def test_a_symbol_is_its_whole_lines_with_what_belongs_above(file, name, label, lines):
    document = Document(SOURCES[file], Path(file))
    region = symbol(document, name)
    assert region.label == label
    assert region.span == document.lines_span(*lines)
    assert region.user_span == region.span


@pytest.mark.parametrize("file", SOURCES)
@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_do_not_matter(file, ending):
    document = Document(SOURCES[file].replace("\n", ending), Path(file))
    assert parses(document.text, language_of(Path(file)))
    name = {"a.c": "name", "a.go": "Box.Size"}.get(file, "Box.size")
    lines = {"a.py": (6, 8), "a.js": (9, 10), "a.tsx": (3, 4), "a.go": (8, 9), "a.rs": (6, 8), "a.c": (1, 5)}[file]
    assert symbol(document, name).span == document.lines_span(*lines)


def test_undecodable_bytes_shift_nothing():
    document = Document.from_bytes(b"# \xe9\xff \xf0\x9f\x98\x80\ndef f():\n    pass\n", Path("a.py"))
    assert symbol(document, "f").span == document.lines_span(2, 3)
    assert parses(document.text, "python")


def test_neighbours_on_a_shared_line_are_not_the_users():
    text = SOURCES["a.js"]
    region = symbol(Document(text, Path("a.js")), "left")
    assert text[region.user_span.start : region.user_span.end] == "function left(){}"
    assert text[region.span.start : region.span.end] == "function left(){} function right(){}\n"


def test_an_exact_name_goes_before_an_inner_one():
    document = Document("class A:\n    def run(self): pass\ndef run(): pass\n", Path("a.py"))
    assert symbol(document, "run").span == document.lines_span(3, 3)


def test_an_ambiguous_name_is_refused_with_ways_to_say_which():
    document = Document("class A:\n    def run(self):\n        pass\nclass B:\n    def run(self): pass\n", Path("a.py"))
    with pytest.raises(UsageError, match=r"2 symbols 'run'.*A\.run, --range 2:3; function B\.run, --range 5:5"):
        symbol(document, "run")
    twice = Document("def f(): pass\ndef f(): pass\n", Path("a.py"))
    with pytest.raises(UsageError, match=r"--range 1:1.*--range 2:2"):
        symbol(twice, "f")


def test_an_unknown_name_is_refused_with_near_ones():
    document = Document(SOURCES["a.py"], Path("a.py"))
    with pytest.raises(UsageError, match=r"a\.py has no symbol 'Box\.sise'.*Did you mean Box\.size"):
        symbol(document, "Box.sise")
    with pytest.raises(UsageError, match=r"Did you mean outer\.inner"):
        symbol(document, "iner")
    with pytest.raises(UsageError, match=r"It has, among others: Box"):
        symbol(document, "zzz")
    with pytest.raises(UsageError, match="No functions, classes or types"):
        symbol(Document("x = 1\n", Path("a.py")), "f")


@pytest.mark.parametrize("path", [Path("notes.txt"), Path("Makefile"), None])
def test_a_symbol_in_an_unknown_language_is_refused_with_the_known_ones(path):
    with pytest.raises(UsageError, match=r"c, go, javascript, python, rust, tsx, typescript.*--range"):
        symbol(Document("x", path), "x")


def test_a_range_and_the_whole_file():
    document = Document("a\nb\nc")
    assert line_range(document, 2, 3).label == "lines 2-3"
    assert line_range(document, 2, 2).label == "line 2"
    assert line_range(document, 2, 3).span == line_range(document, 2, 3).user_span == Span(2, 5)
    assert whole_file(document).span == Span(0, 5)
    assert whole_file(document).label == "the whole file"
    assert whole_file(Document("")).span == Span(0, 0)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"),
        ("A.PYI", "python"),
        ("a.jsx", "javascript"),
        ("a.mjs", "javascript"),
        ("a.ts", "typescript"),
        ("a.tsx", "tsx"),
        ("a.go", "go"),
        ("a.rs", "rust"),
        ("a.h", "c"),
        ("a.md", None),
        ("py", None),
    ],
)
def test_the_suffix_tells_the_language(name, language):
    assert language_of(Path(name)) == language


@pytest.mark.parametrize("file", SOURCES)
def test_syntax_errors_are_seen(file):
    language = language_of(Path(file))
    assert parses(SOURCES[file], language) is True
    assert parses(SOURCES[file] + "\n) = {", language) is False
    assert parses("", language) is True


def test_every_grammar_answers_and_others_are_not_known():
    assert {parses("", language) for language in GRAMMARS} == {True}
    assert parses("(", None) is None
    assert parses("(", "cobol") is None


def test_importing_loads_no_grammar():
    code = "import sys, specedit.edit.region; print([m for m in sys.modules if m.startswith('tree_sitter_')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
