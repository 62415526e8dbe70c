import pytest

from specedit.edit.echo import without_echo
from specedit.edit.guard import Refusal

HEAD = "import os\n\n\nclass Box:\n    size = 1\n\n"
REGION = "    def put(self, x):\n        self.x = x\n"
TAIL = "\n\nbox = Box()\nprint(box)\n"
NEW = "    def put(self, y):\n        self.x = y\n"


@pytest.mark.parametrize("body", [NEW, "@property\n" + NEW, "", "\n", "size = 1\n" + NEW])
def test_what_repeats_nothing_around_it_stays(body):
    assert without_echo(body, HEAD, TAIL, REGION) == body


def test_the_whole_file_is_cut_to_the_region():
    for blank in ("", "\n", "\n\n"):
        body = HEAD.replace("\n\n\n", "\n") + NEW + blank + TAIL.strip("\n") + "\n"
        assert without_echo(body, HEAD, TAIL, REGION).rstrip("\n") == NEW.rstrip("\n")
    assert without_echo(HEAD + NEW, HEAD, "", REGION) == NEW


def test_the_blocks_around_the_region_are_dropped():
    assert without_echo("class Box:\n" + NEW, HEAD, TAIL, REGION) == NEW
    assert without_echo("class Box:\n\n" + NEW, HEAD, TAIL, REGION) == NEW


@pytest.mark.parametrize("body", [HEAD + NEW, HEAD + NEW + "print(box)\n", HEAD.replace("1", "2") + NEW + TAIL])
def test_parts_of_the_file_are_refused(body):
    assert isinstance(without_echo(body, HEAD, TAIL, REGION), Refusal)


def test_lines_next_to_the_region_are_dropped_where_the_body_runs_on_into_them():
    assert without_echo(NEW + "\n\nbox = Box()\n", HEAD, "\n\nbox = Box()\n", REGION).rstrip("\n") == NEW.rstrip("\n")
    tail = TAIL + "\n\ndef more():\n    return 1\n"
    assert without_echo(NEW + TAIL, HEAD, tail, REGION).rstrip("\n") == NEW.rstrip("\n")
    assert without_echo("import os\n\n" + NEW, "import os\n\n", tail, REGION) == NEW
    closing = "    }\n}\n"
    assert without_echo(NEW + closing, HEAD, closing, REGION) == NEW + closing, "brackets alone prove nothing"


def test_one_line_next_to_the_region_is_dropped_only_after_the_line_that_the_region_ends_with():
    head, region, tail = "import os\n\n\n", "def f(x):\n    x += 1\n    print(x)\n", "    return x\n\n\nf(1)\n"
    documented = region.replace("(x):\n", '(x):\n    """Print the next number."""\n')
    assert without_echo(documented + "    return x\n", head, tail, region) == documented
    silent = region.replace("    print(x)\n", "")
    assert without_echo(silent + "    return x\n", head, tail, region) == silent + "    return x\n"
    assert without_echo(region + "    return 1\n", head, tail, region) == region + "    return 1\n"
    assert without_echo("a = 2\nb = 1\n" + "b = 1\n", head, "b = 1\nc = 1\n", "a = 1\nb = 1\n").count("b") == 2


def test_brackets_must_be_closed_as_often_as_they_were_opened():
    head, region, tail = "class A {\n", "  f() {\n    x\n  }\n", "}\n"
    new = region.replace("x", "y")
    assert without_echo(head + new + tail, head, tail, region) == new
    assert isinstance(without_echo(head + new, head, tail, region), Refusal)
    assert isinstance(without_echo(head + new + "  more()\n", head, tail, region), Refusal)
    assert without_echo(f"class A {{\n{new}}}\n", "a\n" + head, "\n  g() {}\n}\n", region) == new


def test_a_region_that_begins_as_the_file_does_is_no_echo():
    text = "import os\nimport os\nx = 1\n"
    assert without_echo("import os\nx = 2\n", "import os\n", "", text.partition("\n")[2]) == "import os\nx = 2\n"
