import difflib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from specedit.edit.document import Document, Span, split_lines
from specedit.edit.fence import fence_for
from specedit.edit.guard import Refusal
from specedit.edit.region import Region, line_range, symbol, whole_file
from specedit.edit.session import EditRequest, apply_result, run_edit
from specedit.edit.stream import to_lf
from specedit.engine.api import CancelToken
from specedit.errors import ContextOverflowError, EngineError, UsageError
from tests.fakes import ScriptedEngine, fenced

CASES = sorted((Path(__file__).parents[2] / "cases").glob("*.txt"))
MORE_CASES = os.environ.get("SPECEDIT_TEST_EDITS")


@dataclass(frozen=True)
class Case:
    head: dict[str, str]
    file: bytes
    answer: str
    status: str
    result: bytes

    @classmethod
    def read(cls, path):
        head, *sections = re.split(r"^--- (\w+)(?: \((.*)\))?\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        named = {name: _bytes(text, marks or "") for name, marks, text in zip(*[iter(sections)] * 3, strict=True)}
        status = next((name for name in ("refused", "unchanged") if name in named), "changed")
        return cls(
            dict(line.split(": ", 1) for line in head.splitlines()),
            named["file"],
            named["answer"].decode().removesuffix("\n"),
            status,
            named["result"] if status == "changed" else named["file"],
        )

    def request(self, data):
        document = Document.from_bytes(data, Path(self.head["path"]))
        region = whole_file(document)
        if "range" in self.head:
            region = line_range(document, *map(int, self.head["range"].split(":")))
        if "symbol" in self.head:
            region = symbol(document, self.head["symbol"])
        allow = self.head.get("allow", "")
        return EditRequest(
            document,
            region,
            self.head["instruction"],
            allow_deletions="deletions" in allow,
            allow_syntax_errors="syntax-errors" in allow,
        )


def _bytes(text, marks):
    if "no final newline" in marks:
        text = text.removesuffix("\n")
    if "crlf" in marks:
        text = text.replace("\n", "\r\n")
    data = text.replace("␍", "\r").replace("␌", "\f").encode("latin-1" if "latin-1" in marks else "utf-8")
    return b"\xef\xbb\xbf" * ("bom" in marks) + data


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cases(path):
    case = Case.read(path)
    request = case.request(case.file)
    engine = ScriptedEngine([case.answer], finish_reason=case.head.get("finish", "stop"))
    result = run_edit(request, engine)
    assert (result.status, result.reason) == (case.status, result.reason)
    assert case.head.get("reason", "") in result.reason
    assert result.document.to_bytes() == case.result
    assert bool(result.fix) == (case.status != "changed")
    assert result.before is request.document


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cases_are_stable(path):
    case = Case.read(path)
    document = Document.from_bytes(case.result, Path(case.head["path"]))
    assert document.text
    if document.undecodable_lines(whole_file(document).span):
        return  # the model can't be shown all of this file
    request = EditRequest(document, whole_file(document), case.head["instruction"])
    result = run_edit(request, ScriptedEngine([fenced(document.text, fence=fence_for(document.text))]))
    assert result.status == "unchanged"
    assert result.hunks == ()


OWN_EDITS = [
    {
        "path": "queue.py",
        "language": "python",
        "instruction": "log each job",
        "before": "import time\n\n\ndef drain(jobs):\n    while jobs:\n        job = jobs.pop()\n"
        "        job()\n        time.sleep(1)\n\n\ndef size(jobs):\n    return len(jobs)\n",
        "after": "import logging\nimport time\n\n\ndef drain(jobs):\n    while jobs:\n        job = jobs.pop()\n"
        "        logging.info('run %s', job)\n        job()\n        time.sleep(1)\n\n\n"
        "def size(jobs):\n    return len(jobs)\n",
    },
    {
        "path": "head.c",
        "language": "c",
        "instruction": "drop the unused macro",
        "before": "#include <stdio.h>\n#define N 3\n#define M 4\n\nint main(void)\n{\n\treturn M;\n}\n",
        "after": "#include <stdio.h>\n#define M 4\n\nint main(void)\n{\n\treturn M;\n}\n",
    },
    {
        "path": "page.md",
        "language": "markdown",
        "instruction": "say how to run it",
        "before": "# Größe 😀\n\n```sh\nmake\n```\n\nEnd.\n",
        "after": "# Größe 😀\n\n```sh\nmake\nmake run\n```\n\nThen look.\n\nEnd.\n",
    },
]
TRANSFORMS = {
    "as it is": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "byte-order mark": lambda text: "\ufeff" + text,
    "no final newline": lambda text: text.rstrip("\n"),
}


def _real_edits():
    if not MORE_CASES:
        return []
    return [json.loads(line) for line in Path(MORE_CASES).read_text(encoding="utf-8").splitlines()]


def _edited(row, before):
    document = Document.from_bytes(before, Path(row["path"]))
    answer = fenced(row["after"], row["language"], fence_for(row["before"] + row["after"]))
    request = EditRequest(
        document,
        whole_file(document),
        row["instruction"],
        allow_deletions=True,
        allow_syntax_errors=True,
    )
    return run_edit(request, ScriptedEngine([answer], chunk_chars=500))


def _check_edit(row):
    for name, transform in TRANSFORMS.items():
        result = _edited(row, transform(row["before"]).encode())
        assert (result.status, result.reason) == ("changed", ""), name
        assert result.document.to_bytes() == transform(row["after"]).encode(), name
    _check_mixed_line_ends(row)


def _check_mixed_line_ends(row):
    ends = ("\n", "\r\n", "\n", "\r\n", "\r\n")
    lines = row["before"].split("\n")
    mixed = "".join(line + ends[i % len(ends)] for i, line in enumerate(lines[:-1])) + lines[-1]
    result = _edited(row, mixed.encode())
    assert to_lf(result.document.text) == row["after"]
    kept = _common_lines(row["before"], row["after"])
    assert _common_lines(mixed, result.document.text) == kept, "an untouched line lost its bytes"


def _common_lines(old, new):
    matcher = difflib.SequenceMatcher(None, split_lines(old), split_lines(new), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


@pytest.mark.parametrize("row", OWN_EDITS, ids=lambda row: row["path"])
def test_written_bytes_equal_what_was_answered(row):
    _check_edit(row)


@pytest.mark.skipif(not MORE_CASES, reason="SPECEDIT_TEST_EDITS names no file of real edits")
def test_written_bytes_equal_what_was_answered_for_real_edits():
    rows = _real_edits()
    assert rows
    for row in rows:
        _check_edit(row)


def _request(text="a\nb\n", **changes):
    document = Document(text, Path("letters.txt"), version=changes.pop("version", 0))
    region = changes.pop("region", None) or whole_file(document)
    return EditRequest(document, region, changes.pop("instruction", "a becomes x"), **changes)


def test_the_answer_is_streamed_and_its_cost_reported():
    seen = []
    result = run_edit(_request(), ScriptedEngine([fenced("x\nb\n")], chunk_chars=4), seen.append)
    assert len(seen) > 1
    assert "".join(seen) == result.answer == fenced("x\nb\n")
    assert result.usage.output_tokens > 0


def test_the_prediction_is_the_region_as_the_model_sees_it():
    document = Document("a\r\nb\r\nc\r\n", Path("letters.txt"))
    request = EditRequest(document, line_range(document, 2, 3), "b becomes x", seed=7, max_new_tokens=9)
    engine = ScriptedEngine([fenced("x\nc\n")])
    run_edit(request, engine)
    asked = engine.requests[0]
    assert (asked.prediction, asked.seed, asked.max_new_tokens) == ("b\nc\n", 7, 9)


def test_hunks_carry_line_numbers_of_the_file_and_true_line_ends():
    document = Document("a\r\nb\r\nc\r\nd\r\n", Path("letters.txt"))
    request = EditRequest(document, line_range(document, 2, 4), "b becomes x, add e")
    result = run_edit(request, ScriptedEngine([fenced("x\nc\nd\ne\n")]))
    assert [(h.start_line, h.old, h.new) for h in result.hunks] == [(2, "b\r\n", "x\r\n"), (5, "", "e\r\n")]


def test_what_does_not_fit_the_context_is_refused_with_the_numbers():
    engine = ScriptedEngine([ContextOverflowError("5,000 tokens do not fit into 4,096")])
    result = run_edit(_request(), engine)
    assert (result.status, result.reason) == ("refused", "5,000 tokens do not fit into 4,096")


def test_an_engine_that_fails_gives_a_failed_edit():
    assert run_edit(_request(), ScriptedEngine([EngineError("out of memory")])).status == "failed"


def test_a_request_that_cannot_be_meant_is_raised():
    with pytest.raises(UsageError):
        run_edit(_request(), ScriptedEngine([UsageError("temperature is negative")]))


def test_cancelling_changes_nothing():
    cancel = CancelToken()
    result = run_edit(_request(cancel=cancel), ScriptedEngine([fenced("x\nb\n")]), lambda _: cancel.cancel())
    assert result.status == "cancelled"
    assert result.document is result.before


def test_undecodable_bytes_are_refused_before_the_model_is_asked():
    document = Document.from_bytes(b"a\n\xff\n", Path("letters.txt"))
    engine = ScriptedEngine([fenced("x\n")])
    result = run_edit(EditRequest(document, whole_file(document), "a becomes x"), engine)
    assert result.status == "refused"
    assert "line 2" in result.reason
    assert engine.requests == []


def test_a_character_that_the_encoding_lacks_is_refused():
    data = "# coding: latin-1\nx = 'é'\n".encode("latin-1")
    document = Document.from_bytes(data, Path("app.py"))
    engine = ScriptedEngine([fenced("# coding: latin-1\nx = '€'\n")])
    result = run_edit(EditRequest(document, whole_file(document), "euro"), engine)
    assert result.status == "refused"
    assert "€" in result.reason


def test_nothing_changes_outside_the_selection():
    document = Document("first, second, third\nrest\n", Path("letters.txt"))
    region = Region(Span(0, 21), Span(7, 13), "the selection")
    inside = run_edit(EditRequest(document, region, "2nd"), ScriptedEngine([fenced("first, 2nd, third\n")]))
    outside = run_edit(EditRequest(document, region, "2nd"), ScriptedEngine([fenced("1st, 2nd, third\n")]))
    assert inside.document.text == "first, 2nd, third\nrest\n"
    assert (outside.status, outside.document.text) == ("refused", document.text)
    assert "outside the selection" in outside.reason


def test_an_edit_is_for_one_version_of_the_text_only():
    request = _request(version=1)
    result = run_edit(request, ScriptedEngine([fenced("x\nb\n")]))
    assert result.version == 1
    assert apply_result(result, request.document) == result.document
    assert isinstance(apply_result(result, Document("a\nb\n", version=2)), Refusal)
    assert isinstance(apply_result(result, Document("a\nc\n", version=1)), Refusal)
