"""The page of a trace: whole, harmless, and it says who drafted what and what became of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from specedit.cli.trace import TracedEdit, page
from specedit.engine.api import DraftedToken, DrafterUsage, TraceStep, Usage

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order."""

    def __init__(self, text):
        super().__init__()
        self.spans, self.ids, self.links, self.open, self.shown = [], set(), [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given["id"]} if "id" in given else set()
        self.links += [given["href"]] if "href" in given else []
        assert "src" not in given
        if tag == "span":
            self.spans.append([given.get("class"), given.get("title"), ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.shown += data
        if self.open and self.open[-1] == "span":
            self.spans[-1][2] += data


def step(drafted, accepted, emitted, **more):
    return TraceStep(tuple(DraftedToken(*token) for token in drafted), accepted, emitted, **more)


FORKED = step(
    [
        ("a", -1, "cursor", 0.9),
        ("b", 0, "cursor", 0.8),
        ("x", 0, "lookup", 0.1),
        ("c", 1, "replay", 0.7),
        ("y", 2, "lookup", 0.05),
    ],
    (0, 1, 3),
    ("a", "b", "c", "d"),
    proposed=9,
    draft_seconds=0.002,
    forward_seconds=0.085,
)
PLAIN = step([], (), ("\n",))
VAIN = step([("q", -1, "cursor", 0.5)], (), ("z",), proposed=1)
USAGE = Usage(
    output_tokens=6,
    forwards=3,
    drafters={"cursor": DrafterUsage(3, 2), "lookup": DrafterUsage(2, 0), "replay": DrafterUsage(1, 1)},
    depths={"1": DrafterUsage(2, 1)},
)


def edit(*steps, name="a.py"):
    return TracedEdit(name, "changed", steps, USAGE)


def test_the_answer_is_coloured_by_who_drafted_it():
    found = Page(page([edit(FORKED, PLAIN, VAIN)]))
    answer = [span for span in found.spans if span[1] and span[1].startswith("step ")]
    assert [text for _, _, text in answer] == ["ab", "c", "d", "\n", "z"]
    cursor, replay, *own = [kind for kind, _, _ in answer]
    assert cursor != replay
    assert set(own) == {"own"}
    assert "cursor, 1 to 2 ahead, believed 90% to 80%" in answer[0][1]
    assert "the model" in answer[2][1]


def test_every_branch_is_shown_and_what_was_in_vain_is_struck_out():
    found = Page(page([edit(FORKED, VAIN)]))
    branches = [(text, kind.endswith(" no")) for kind, title, text in found.spans if title and "step" not in title]
    assert branches == [("a", False), ("b", False), ("c", False), ("xy", True), ("q", True)]


def test_a_step_is_told_in_words_and_every_link_leads_somewhere():
    text = page([edit(FORKED, PLAIN), edit(VAIN, name="b.py")])
    found = Page(text)
    assert "step 1: 3 of 5 drafted tokens kept (9 proposed), 4 given; drafting 2.0 ms, forward 85 ms" in found.shown
    assert {link.removeprefix("#") for link in found.links} == found.ids
    assert len(found.ids) == 3
    assert "b.py: changed" in found.shown


def test_the_page_says_how_the_drafts_fared():
    shown = Page(page([edit(FORKED, PLAIN, VAIN)])).shown
    for words in ("right to its end", "empty", "wrong at once", "67%", "50%"):
        assert words in shown


def test_nothing_of_a_file_or_an_answer_can_act_on_the_page():
    evil = '</pre><script>alert(1)</script>"\x1b\u202e&'
    steps = step([(evil, -1, evil, 0.5)], (0,), (evil, evil))
    usage = Usage(output_tokens=2, forwards=1, drafters={evil: DrafterUsage(1, 1)})
    text = page([TracedEdit(evil, evil, (steps,), usage)])
    Page(text)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not re.search(r"https?:|url\(|@import", text), "the page needs nothing else"


def test_a_tree_deeper_than_calls_can_nest_is_shown():
    tree = [("a", -1, "cursor", 1.0)]
    for depth in range(3000):
        tip = max(0, 2 * depth - 1)
        tree += [("b", tip, "cursor", 1.0), ("c", tip, "cursor", 1.0)]
    Page(page([edit(step(tree, (), ("a",)))]))


def test_an_edit_without_an_answer_is_a_section_too():
    assert "failed" in Page(page([TracedEdit("a.py", "failed", (), Usage())])).shown
