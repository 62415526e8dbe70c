"""The context of a completion, from small projects on disk."""

from dataclasses import replace
from pathlib import Path

import pytest

from specedit.config import Settings
from specedit.edit.context import ContextShares, DiskSources, gather
from specedit.edit.document import Document
from specedit.edit.prompt_budget import ON_GPU
from specedit.edit.recent import RecentEdit

PLENTY = replace(ON_GPU, context_tokens=4000)

SHOP = '''\
"""Goods."""

import os


class Basket:
    """What a customer takes.

    A longer story.
    """

    owner: str

    def total(self, rate: float) -> float:
        """All prices together."""
        return sum(self.prices) * rate

    def _hidden(self):
        return 0


def discount(basket: Basket) -> float:
    return 0.1


def unused():
    return None
'''


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(root: Path, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def context(root, name, text, *, opened=(), edits=(), budget=PLENTY, shares=None, **settings):
    """What is shown beside the text, with the cursor at `|`, as name -> text."""
    before, after = text.split("|")
    document = Document(before + after, root / name)
    sources = DiskSources(root, opened, edits, Settings(**settings))
    found: dict[str, str] = {}
    for file in gather(document, len(before), sources, budget, shares or ContextShares()):
        found[file.name] = found.get(file.name, "") + file.text
    return found


def edit(name="b.py", before="x = 1\n", after="x = 2\n", path=None, line=1):
    return RecentEdit(name, path, line, before, after, "", "")


def test_what_is_imported_is_shown_by_its_signatures(project):
    write(project, {"pkg/shop.py": SHOP})
    found = context(project, "pkg/main.py", "from pkg.shop import Basket\n\nb = Basket()\nb.|\n")
    text = found["pkg/shop.py"]
    assert 'class Basket:\n    """What a customer takes."""\n    owner: str\n' in text
    assert '    def total(self, rate: float) -> float:\n        """All prices together."""\n' in text
    assert "sum(self.prices)" not in text
    assert "_hidden" not in text
    assert "unused" not in text
    assert "import os" not in text


IN_PYTHON = "def price(x):\n    return x\n"
IN_SCRIPT = "export function price(x) {\n  return x;\n}\n"
IN_GO = "package shop\n\nfunc Price(x int) int {\n\treturn x\n}\n"
IN_RUST = "pub fn price(x: u8) -> u8 {\n    return x;\n}\n"
IN_C = "int price(int x) {\n    return x;\n}\n"


@pytest.mark.parametrize(
    ("file", "shown", "name", "text"),
    [
        ("shop.py", IN_PYTHON, "main.py", "import shop\nshop.price(|"),
        ("pkg/shop.py", IN_PYTHON, "pkg/main.py", "from .shop import price\nprice(|"),
        ("pkg/shop.py", IN_PYTHON, "pkg/sub/main.py", "from ..shop import price\n|"),
        ("pkg/shop.py", IN_PYTHON, "pkg/main.py", "from . import shop\nshop.price(|"),
        ("pkg/shop.py", IN_PYTHON, "pkg/main.py", "import os, shop as s\ns.price(|"),
        ("src/pkg/__init__.py", IN_PYTHON, "tests/a.py", "from pkg import (\n    price,\n)\n|"),
        ("shop.js", IN_SCRIPT, "main.js", "import { price } from './shop';\n|"),
        ("shop.ts", IN_SCRIPT, "main.tsx", 'import { price } from "./shop.js";\n|'),
        ("lib/index.js", IN_SCRIPT, "main.js", "const { price } = require('./lib');\nprice(|"),
        ("shop.go", IN_GO, "main.go", "package shop\n\nvar y = Price(|"),
        ("shop/a.go", IN_GO, "main.go", 'package a\n\nimport (\n\t"x.org/a/shop"\n)\n\nvar y = shop.Price(|'),
        ("src/shop.rs", IN_RUST, "src/main.rs", "mod shop;\nuse crate::shop::price;\n\nfn main() {\n    |\n}\n"),
        ("src/a/shop.rs", IN_RUST, "src/a/b.rs", "use super::shop::{price, Other};\n|"),
        ("include/shop.h", IN_C, "src/main.c", '#include "shop.h"\n\nint y = price(|'),
    ],
)
def test_imports_are_found_as_the_language_finds_them(project, file, shown, name, text):
    write(project, {"go.mod": "module x.org/a\n", file: shown})
    found = context(project, name, text)
    assert [*found] == [file]
    assert "price" in found[file].lower()
    assert "return" not in found[file]


def test_names_near_the_cursor_are_looked_up_in_open_files(project):
    other = Document(
        "def compute_rate(year: int) -> float:\n    return 1.0\n\n\ndef other():\n    pass\n", project / "x/b.py"
    )
    found = context(project, "a.py", "rate = compute_rate(|\n", opened=[other], shares=ContextShares(open_files=0))
    assert found == {"x/b.py": "def compute_rate(year: int) -> float:\n"}


def test_a_method_is_looked_up_where_only_one_has_its_name(project):
    one = Document("class A:\n    def compute_rate(self, year):\n        return 1\n", project / "one.py")
    two = Document("class B:\n    def compute_rate(self, day):\n        return 2\n", project / "two.py")
    only = ContextShares(open_files=0)
    text = "rate = thing.compute_rate(|\n"
    assert context(project, "a.py", text, opened=[one], shares=only) == {
        "one.py": "    def compute_rate(self, year):\n"
    }
    assert context(project, "a.py", text, opened=[one, two], shares=only) == {}
    assert context(project, "a.py", "rate = compute_rate(|\n", opened=[one], shares=only) == {}


def test_a_definition_far_up_in_the_file_is_shown(project):
    filler = "".join(f"value_{number} = {number}\n" for number in range(2000))
    text = f"def compute_rate(year: int) -> float:\n    return 1.0\n\n{filler}\nrate = compute_rate(|\n"
    assert context(project, "a.py", text) == {"a.py": "def compute_rate(year: int) -> float:\n"}
    near = "def compute_rate(year: int) -> float:\n    return 1.0\n\nrate = compute_rate(|\n"
    assert context(project, "a.py", near) == {}


def test_the_lines_of_open_files_that_are_like_those_at_the_cursor(project):
    filler = "".join(f"value_{number} = {number}\n" for number in range(100))
    like = "for order in orders:\n    invoice = make_invoice(order)\n    send_invoice(invoice)\n"
    opened = [
        Document(filler, project / "no.py"),
        Document(filler + like + filler, project / "yes.py"),
        Document("order, orders, invoice = 1, 2, 3\n", project / "notes.txt"),
        Document("order, orders = 1, 2\n", project / "little.py"),
    ]
    found = context(project, "a.py", "for order in orders:\n    invoice = |\n", opened=opened)
    assert [*found] == ["yes.py", "notes.txt"]
    assert found["yes.py"] == like


def test_recent_edits_are_shown_the_newest_last(project):
    edits = [edit(before="new = 1\n", after="new = 2\n"), edit(before="", after="old = 1\n")]
    [text] = context(project, "a.py", "x = |\n", edits=edits).values()
    assert text.index("+old = 1") < text.index("-new = 1\n+new = 2\n")
    assert text.startswith("--- b.py\n+++ b.py\n")


def test_recent_edits_that_stand_at_the_cursor_are_not_shown(project):
    here = edit("a.py", path=project / "a.py")
    assert context(project, "a.py", "x = 2\n|\n", edits=[here]) == {}


def test_budgets_hold_and_lines_stay_whole(project):
    write(project, {"shop.py": SHOP})
    other = Document(SHOP, project / "other.py")
    for tokens in (0, 20, 60, 200):
        found = context(
            project,
            "a.py",
            "from shop import Basket, discount\n\nb = Basket()\ntotal = discount(b)\n|\n",
            opened=[other],
            edits=[edit()],
            budget=replace(ON_GPU, context_tokens=tokens),
        )
        shown = "".join(found.values())
        assert len(shown.encode()) <= tokens * 3
        whole = {*SHOP.split("\n"), '    """What a customer takes."""', "--- b.py", "+++ b.py", "-x = 1", "+x = 2"}
        assert set(shown.split("\n")) <= whole


def test_what_is_shown_stays_while_a_word_is_typed(project):
    write(project, {"shop.py": SHOP})
    other = Document(SHOP, project / "other.py")
    text = "from shop import Basket, discount\n\nb = Basket()\ntotal = discount(b)\n"
    shown = [context(project, "a.py", f"{text}res = disc{more}|\n", opened=[other]) for more in ("", "o", "ou")]
    assert shown[0] == shown[1] == shown[2]


def test_secrets_and_ignored_files_are_never_shown(project):
    source = "def compute_rate(year: int) -> float:\n    return 1.0\n"
    write(project, {".gitignore": "private/\n", "private/shop.py": source, "credentials.py": source, "link.py": ""})
    (project / "link.py").unlink()
    (project / "link.py").symlink_to(project / "private" / "shop.py")
    text = "from private.shop import compute_rate\nfrom link import compute_rate\nrate = compute_rate(|\n"
    opened = [
        Document(source, project / "private" / "shop.py"),
        Document(source, project / ".env"),
        Document(source, project / "link.py"),
        Document(source, Path("secrets.txt")),
    ]
    edits = [edit(".env", path=project / ".env"), edit("p.py", path=project / "private" / "p.py"), edit("id_rsa")]
    assert context(project, "a.py", text, opened=opened, edits=edits) == {}
    assert context(project, "a.py", text, opened=opened, edits=edits, allow_ignored=True).keys() == {
        "private/shop.py",
        "link.py",
        "recent_edits.diff",
    }
    assert context(project, "a.py", "import credentials\ncredentials.compute_rate(|").keys() == {"credentials.py"}
    own = {"secret_patterns": ("credentials.py",)}
    assert context(project, "a.py", "import credentials\ncredentials.compute_rate(|", **own) == {}


def test_a_file_that_is_changed_or_ignored_meanwhile_is_seen_so(project):
    write(project, {"shop.py": "def price(old):\n    return old\n"})
    text = "from shop import price\nprice(|"
    opened = [Document("def compute_rate(year):\n    return 1\n", project / "other.py")]
    assert context(project, "a.py", text) == {"shop.py": "def price(old):\n"}
    write(project, {"shop.py": "def price(new, more):\n    return new\n"})
    assert context(project, "a.py", text) == {"shop.py": "def price(new, more):\n"}
    assert context(project, "a.py", "compute_rate(|", opened=opened).keys() == {"other.py"}
    write(project, {".gitignore": "shop.py\nother.py\n"})
    assert context(project, "a.py", text) == {}
    assert context(project, "a.py", "compute_rate(|", opened=opened) == {}


def test_nothing_outside_the_root_is_read(project):
    inner = project / "inner"
    write(project, {"shop.py": "def price(x):\n    return x\n", "inner/a.py": ""})
    assert context(inner, "a.py", "from ..shop import price\nprice(|") == {}
    (inner / "out.py").symlink_to(project / "shop.py")
    assert context(inner, "a.py", "from out import price\nprice(|") == {}


def test_an_open_file_counts_as_the_editor_has_it(project):
    write(project, {"shop.py": "def price(old):\n    return old\n"})
    opened = [Document("def price(new):\n    return new\n", project / "shop.py")]
    found = context(project, "a.py", "from shop import price\nprice(|", opened=opened)
    assert found == {"shop.py": "def price(new):\n"}


def test_untitled_documents_and_binary_files_do_no_harm(project):
    (project / "shop.py").write_bytes(b"\0\1\2")
    assert context(project, "a.py", "import shop\nshop.price(|") == {}
    other = Document("def compute_rate(year):\n    return 1\n", Path("Untitled-1.py"))
    sources = DiskSources(None, [other])
    [file] = gather(Document("compute_rate("), 13, sources, shares=ContextShares(open_files=0))
    assert (file.name, file.text) == ("Untitled-1.py", "def compute_rate(year):\n")
    assert gather(Document("import shop\n", Path("b.py")), 5, sources) == ()
    assert gather(Document(""), 0, DiskSources(None)) == ()


def test_a_broken_or_huge_file_is_no_obstacle(project):
    write(
        project,
        {"shop.py": "def price(x:\n  ((((\nclass\n", "big.py": "x = 1\n" * 100_000 + "def huge(x):\n    pass\n"},
    )
    found = context(project, "a.py", "from shop import price\nfrom big import huge\nhuge(price(|")
    assert "huge" not in "".join(found.values())
