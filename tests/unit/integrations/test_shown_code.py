import pytest

from specedit.integrations.shown_code import code_shown


def block(*lines, fence="```", tag="py"):
    return "\n".join([f"{fence}{tag}", *lines, fence])


def test_the_code_of_the_latest_turn_that_shows_some_is_taken():
    part = f"user\nThis part:\n\n{block('x = 1')}\n\nRename x to y."
    shown = code_shown(["assistant\n", part, f"user\n{block('old = 1')}"])
    assert (shown.code, shown.opening, shown.closing) == ("x = 1\n", "```py\n", "```")


def test_a_turn_whose_block_is_still_open_shows_none():
    assert code_shown(["assistant\n```py\nx =", f"user\n{block('x = 1')}"]).code == "x = 1\n"


def test_the_longest_block_is_taken_not_an_example_in_the_instruction():
    example, part = block("f()"), block("def f():", "    return 1")
    for turn in (f"{part}\n\nCall it like this:\n{example}", f"Like this:\n{example}\n\nDo it here:\n{part}"):
        assert code_shown([turn]).code == "def f():\n    return 1\n"


def test_a_fence_inside_longer_fences_is_code():
    shown = code_shown([block("```", "x", "```", fence="````", tag="markdown")])
    assert shown.code == "```\nx\n```\n"
    assert (shown.opening, shown.closing) == ("````markdown\n", "````")


def test_the_instruction_gives_hints():
    hints = code_shown([f"{block('total = 1', 'print(total)')}\n\nRename total to amount."]).hints()
    assert ("total", "amount") in hints.substitutions
    assert hints.opening == "```py\n"


@pytest.mark.parametrize("turn", ["", "no code at all", "an `inline` word", "```py\nnever closed"])
def test_without_a_whole_block_there_is_none(turn):
    assert code_shown([turn]) is None
