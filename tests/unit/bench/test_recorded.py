import json

import pytest

from specedit.bench.recorded import RecordedEdit, read_edits, tokenized
from specedit.engine.tokens import Tokenizer
from specedit.errors import UsageError
from tests.tiny_model import byte_level


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(byte_level())


def write(path, *rows):
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_rows_need_only_before_and_after_and_may_have_more(tmp_path):
    row = {"before": "x = 1\n", "after": "x = 2\n"}
    rows = [row, "", row | {"id": "b", "path": "a.py", "size": "large", "licence": "MIT", "hunks": [1]}]
    first, second = read_edits(write(tmp_path / "edits.jsonl", *rows))
    assert (first.before, first.after, first.id) == ("x = 1\n", "x = 2\n", "line 1")
    assert (second.id, second.path, second.size) == ("b", "a.py", "large")
    assert len(read_edits(tmp_path / "edits.jsonl", 1)) == 1


@pytest.mark.parametrize("wrong", ["{", '{"before": "x"}', '{"before": 1, "after": "x"}', "[]"])
def test_a_line_of_another_form_is_named(tmp_path, wrong):
    file = write(tmp_path / "edits.jsonl", {"before": "", "after": "x"}, "", wrong)
    with pytest.raises(UsageError, match=r"line 3, is no recorded edit.*before and after"):
        read_edits(file)


def test_a_file_without_edits_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no edit"):
        read_edits(write(tmp_path / "edits.jsonl", ""))
    with pytest.raises(UsageError, match="can't read"):
        read_edits(tmp_path / "none.jsonl")


def test_the_prompt_is_the_products_and_the_answer_is_the_new_file_alone(tokenizer):
    edit = RecordedEdit(before="x = 1\r\n", after="x = 2\r\n", path="a.py", instruction="Set x to 2.", id="a")
    found = tokenized(edit, tokenizer)
    prompt = tokenizer.decode(found.prompt_ids)
    assert "Set x to 2." in prompt
    assert "```python\nx = 1\n```" in prompt
    assert prompt.startswith("<|im_start|>user\n")
    assert tokenizer.decode(found.prediction_ids) == "x = 1\n"
    assert tokenizer.decode(found.answer_ids) == "x = 2\n"


def test_an_edit_without_a_size_is_classed_by_its_answer(tokenizer):
    def size(characters, **named):
        return tokenized(RecordedEdit(before="a", after="x" * characters, **named), tokenizer).size

    assert [size(512), size(513), size(2049)] == ["short", "middle", "long"]
    assert size(9, size="large") == "large"


def test_the_edited_share_counts_characters_of_lines_that_one_text_lacks():
    def share(before, after):
        return RecordedEdit(before=before, after=after).edited_share

    assert share("aa\nbb\n", "aa\nbb\n") == 0
    assert share("", "") == 0
    assert share("aa\n", "bb\n") == 1
    assert share("aa\nbb\n", "aa\ncc\n") == 0.5
    assert share("aa\r\nbb\r\n", "aa\nbb\n") == 0
