"""What a model is shown stays the same while the user types, so that an engine need not read it again."""

from dataclasses import replace
from itertools import pairwise

import pytest

from specedit.edit.completion import CompletionRequest, complete
from specedit.edit.context import DiskSources, gather
from specedit.edit.document import Document, Span
from specedit.edit.gap import BYTES_PER_TOKEN
from specedit.edit.prompt_budget import ON_CPU, ON_GPU, PromptBudget
from specedit.edit.recent import RecentEdits
from tests.fakes import ScriptedEngine

SHOP = '''\
def discount(basket: list[float], rate: float) -> float:
    """What is taken off."""
    return sum(basket) * rate


def shipping(weight: float) -> float:
    """By weight, in kilograms."""
    return weight * 1.5
'''
ABOVE = "import shop\n\n\n" + "".join(
    f"def price_{number}(basket, rate):\n    total = sum(basket)\n    return total - {number} * rate\n\n\n"
    for number in range(40)
)
BELOW = "\n\n" + ABOVE.replace("price", "cost")
NEW_LINES = '''\
def price_with_discount(basket, rate):
    """All of it."""
    total = shop.discount(basket, rate)
    weight = len(basket) * 0.25
    if weight > 10:
        total += shop.shipping(weight)
    for item in basket:
        if item < 0:
            total -= item
    rounded = round(total, 2)
    return rounded


def price_without_discount(basket):
    return price_with_discount(basket, 0)
'''


@pytest.mark.parametrize(
    ("device", "budget"),
    [("cpu", ON_CPU), ("cpu:0", ON_CPU), ("cuda:0", ON_GPU), ("mps", ON_GPU), (None, ON_GPU)],
)
def test_a_cpu_reads_less(device, budget):
    assert PromptBudget.for_device(device) == budget
    assert ON_CPU.prefix_tokens < ON_GPU.prefix_tokens / 2


def common(one, other):
    """How many characters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Editor:
    """A file that is typed into, with a file that it imports open beside it; each keystroke asks a model."""

    def __init__(self, root, budget):
        (root / ".git").mkdir()
        self.path, self.root, self.budget = root / "main.py", root, budget
        self.shop = Document(SHOP, root / "shop.py")
        self.text, self.cursor, self.now = ABOVE + BELOW, len(ABOVE), 0.0
        self.recent = RecentEdits()
        self.engine = ScriptedEngine([""])

    def change(self, text, offset, length=0, path=None, whole=None):
        """Put `text` into the file, or into another one that has the text `whole`."""
        self.now += 0.2
        path, whole = path or self.path, self.text if whole is None else whole
        self.recent.record(str(path), path.name, path, whole, Span(offset, offset + length), text, self.now)
        if path == self.path:
            self.text = self.text[:offset] + text + self.text[offset + length :]

    def type(self, text):
        for character in text:
            self.change(character, self.cursor)
            self.cursor += 1
            self.ask()

    def ask(self):
        document = Document(self.text, self.path)
        sources = DiskSources(self.root, (self.shop,), self.recent.latest(8))
        files = gather(document, self.cursor, sources, self.budget)
        complete(CompletionRequest(document, self.cursor, files, budget=self.budget), self.engine)

    @property
    def shown(self):
        """What the model is shown up to the cursor, of each request."""
        fims = [request.fim for request in self.engine.requests]
        return ["".join(f"{file.name}\n{file.text}\n" for file in fim.files) + fim.prefix for fim in fims]

    @property
    def read_again(self):
        """How many characters of each request but the first stood in the one before, and are to be read again."""
        return [len(before) - common(before, after) for before, after in pairwise(self.shown)]


def test_typing_lines_reads_little_again(tmp_path):
    editor = Editor(tmp_path, ON_CPU)
    editor.change("rates", editor.text.index("rate)"), 4)
    editor.change("weights", SHOP.index("weight:"), 6, path=editor.shop.path, whole=SHOP)
    editor.now += 60
    editor.type(NEW_LINES)
    assert editor.shown[0].startswith("shop.py\n")
    assert "weights" in editor.shown[-1], "an edit elsewhere is shown"
    moved = [chars for chars in editor.read_again if chars]
    assert len(moved) <= 1 + NEW_LINES.count("\n") // 4, "only where a step of lines is full"
    assert sum(editor.read_again) < 8 * ON_CPU.prefix_tokens * BYTES_PER_TOKEN


def test_typing_within_a_line_reads_nothing_again_where_reading_takes_time(tmp_path):
    editor = Editor(tmp_path, ON_CPU)
    editor.type("total = shop.shipping(sum(basket)) * rate + price_3(basket, rate)")
    assert not any(editor.read_again)
    assert "def price_3(" not in editor.shown[-1]


def test_names_that_were_just_typed_are_looked_up_at_once_where_it_takes_none(tmp_path):
    editor = Editor(tmp_path, ON_GPU)
    editor.type("total = sum(basket) * rate + ")
    assert not any(editor.read_again)
    editor.type("price_3(basket, rate)")
    assert "def price_3(" in editor.shown[-1]


def test_the_edit_under_way_is_never_shown_wherever_it_began(tmp_path):
    editor = Editor(tmp_path, replace(ON_CPU, prefix_tokens=48))
    editor.type('note = (\n    "one long line of words to fill the window",\n    "another long line of words",\n')
    editor.type('    "and one more of these lines, the last one",\n)\n')
    assert not any("recent_edits" in shown for shown in editor.shown)


def test_an_edit_elsewhere_is_shown_once_it_is_finished(tmp_path):
    editor = Editor(tmp_path, ON_CPU)
    editor.type("x = 1\n")
    assert "recent_edits" not in editor.shown[-1]
    editor.cursor = editor.text.index("def price_3(")
    editor.ask()
    assert "+x = 1" in editor.shown[-1]
