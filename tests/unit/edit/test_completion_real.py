"""Completions by the real model: few, and only what any model that is worth using gets right."""

from pathlib import Path

import pytest

from specedit.edit.completion import CompletionRequest, complete
from specedit.edit.context import DiskSources, gather
from specedit.edit.document import Document
from specedit.edit.syntax import language_of, parses

pytestmark = pytest.mark.real

CASES = {
    "stack.py": """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        |

    def __len__(self):
        return len(self.items)
""",
    "read.go": """\
package main

import "os"

func read(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err| {
		return "", err
	}
	return string(data), nil
}
""",
    "names.js": """\
function names(users) {
  return users.map(|);
}
""",
    "sum.rs": """\
fn sum(values: &[i32]) -> i32 {
    let mut total = 0;
    for value in values {|
    }
    total
}
""",
}


@pytest.fixture(scope="module")
def engine(qwen):
    from specedit.engine.local import LocalEngine

    return LocalEngine(*qwen)


@pytest.mark.parametrize("name", CASES)
def test_the_file_parses_with_the_completion(engine, name):
    before, after = CASES[name].split("|")
    document = Document(before + after, Path(name))
    completion = complete(CompletionRequest(document, len(before)), engine)
    text = before + completion.text + document.text[completion.span.end :]
    assert completion.status == "found", completion.reason
    assert parses(text, language_of(Path(name)))
    assert completion.usage.output_tokens < 64


def test_an_imported_name_is_used_as_it_is_defined(engine, tmp_path):
    (tmp_path / "shop.py").write_text(
        "class Basket:\n    def put_into_cart(self, goods: str) -> None:\n        self.goods.append(goods)\n"
    )
    text = "from shop import Basket\n\nbasket = Basket()\nbasket.put_"
    document = Document(text, tmp_path / "main.py")
    found = [
        complete(CompletionRequest(document, len(text), files=files), engine).text
        for files in ((), gather(document, len(text), DiskSources(tmp_path)))
    ]
    assert not found[0].startswith("into_cart(")
    assert found[1].startswith("into_cart(")
