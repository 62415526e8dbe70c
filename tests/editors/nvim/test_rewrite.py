"""Rewriting in Neovim: changes are shown as the model writes them, and made in the text as they are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.editors.nvim.harness import Editor
from tests.lsp.scripted_lsp import Script, obeyed

Neovim = Callable[..., Editor]

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))


def changed(text: str, *numbers: int, to: str = "changed {}") -> str:
    """The text with other lines in the places of those."""
    lines = text.splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = to.format(number) + "\n"
    return "".join(lines)


def ask(editor: Editor, text: str, lines: str = "%", *, bang: str = "") -> None:
    """Have lines rewritten as `text`."""
    editor.lua("vim.cmd(...)", f"{lines}SpecEdit{bang} {obeyed(text)}")


def ask_and_wait(editor: Editor, text: str, lines: str = "%") -> None:
    ask(editor, text, lines)
    ready(editor)


def ready(editor: Editor) -> None:
    editor.told("change")
    editor.until(lambda: removed(editor) or added(editor))


def removed(editor: Editor) -> list[int]:
    """The lines, from 1, that are shown as going."""
    marks = [mark for mark in editor.extmarks("specedit.preview") if mark.details.get("hl_group") == "SpecEditRemoved"]
    return [mark.row + 1 for mark in marks]


def added(editor: Editor) -> list[str]:
    """The lines that are shown as coming."""
    return [
        "".join(text for text, *_ in line).rstrip()
        for mark in editor.extmarks("specedit.preview")
        for line in mark.details.get("virt_lines", ())
        if "SpecEditAdded" in str(line[-1])
    ]


def test_the_third_change_is_rejected_the_rest_accepted_and_undone_in_one_step(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8, 13, 18))
    assert removed(editor) == [3, 8, 13, 18]
    assert added(editor) == ["changed 3", "changed 8", "changed 13", "changed 18"]
    editor.command("normal! 13G")
    editor.command("SpecEditReject")
    editor.command("SpecEditAcceptAll")
    assert editor.saved().decode() == changed(BEFORE, 3, 8, 18)
    assert editor.extmarks("specedit.preview") == []
    editor.command("normal! u")
    assert editor.text() == BEFORE


def header(editor: Editor) -> str:
    """The line over the part that says how it stands."""
    for mark in editor.extmarks("specedit.preview"):
        for line in mark.details.get("virt_lines", ()):
            if "SpecEditRegion" in str(line):
                return "".join(text for text, *_ in line).strip()
    return ""


def test_changes_are_accepted_in_any_order_each_a_step_of_its_own(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8, 13))
    for line, left in ((13, [3, 8]), (3, [8]), (8, [])):
        editor.lua("vim.cmd(...)", f"{line} | SpecEditAccept")
        assert removed(editor) == left
    assert editor.text() == changed(BEFORE, 3, 8, 13)
    undone = []
    for _ in range(3):
        editor.command("normal! u")
        undone.append(editor.text())
    assert undone == [changed(BEFORE, 3, 13), changed(BEFORE, 13), BEFORE]


def test_what_is_left_is_right_after_an_accepted_change_was_undone(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    longer = changed(BEFORE, 3, 13, to="new {0}\nand {0}")
    ask_and_wait(editor, longer)
    editor.lua("vim.cmd('3 | SpecEditAccept')")
    assert removed(editor) == [14]
    editor.command("normal! u")
    assert removed(editor) == [13]
    editor.command("SpecEditAccept")
    assert editor.text() == changed(BEFORE, 13, to="new {0}\nand {0}")


def test_lines_typed_above_while_the_model_writes_move_the_preview(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.1))
    part = "".join(BEFORE.splitlines(keepends=True)[9:20])
    ask(editor, changed(part, 2, 9), "10,20")
    editor.until(lambda: "rewriting" in header(editor))
    editor.keys("ggOone<CR>two<CR>three<Esc>")
    editor.until(lambda: removed(editor) == [14])
    editor.keys("ggdd")
    editor.told("2 changes")
    editor.until(lambda: removed(editor) == [13, 20])
    editor.command("SpecEditAcceptAll")
    assert editor.text() == "two\nthree\n" + changed(BEFORE, 11, 18, to="changed {}").replace(
        "changed 11", "changed 2"
    ).replace("changed 18", "changed 9")


def test_saving_while_the_model_writes_ends_nothing(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.1))
    ask(editor, changed(BEFORE, 3, 18))
    editor.until(lambda: removed(editor) == [3])
    editor.command("write")
    editor.until(lambda: removed(editor) == [3, 18])
    editor.told("2 changes")
    editor.command("SpecEditAcceptAll")
    assert editor.text() == changed(BEFORE, 3, 18)


def test_typing_where_the_model_writes_ends_it_and_keeps_what_was_typed(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.1))
    ask(editor, changed(BEFORE, 3, 18))
    editor.until(lambda: removed(editor) == [3])
    editor.keys("5GA typed<Esc>")
    assert "not rewritten" in editor.told("the text was changed")
    assert editor.extmarks("specedit.preview") == []
    assert editor.text() == BEFORE.replace("line 5\n", "line 5 typed\n")


def test_a_change_whose_lines_are_others_now_is_refused_and_the_rest_made(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8, 13))
    editor.keys("8GA typed<Esc>")
    editor.until(lambda: removed(editor) == [3, 13])
    assert "out of date" in editor.screen()
    editor.command("SpecEditAccept")
    editor.told("Undo what you changed there")
    assert editor.text() == BEFORE.replace("line 8\n", "line 8 typed\n")
    editor.command("SpecEditAcceptAll")
    typed = changed(BEFORE, 3, 13).replace("line 8\n", "line 8 typed\n")
    assert editor.text() == typed
    editor.keys("8G$daw")
    editor.until(lambda: removed(editor) == [8])
    editor.command("SpecEditAccept")
    assert editor.text() == changed(BEFORE, 3, 8, 13)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("one\r\ntwo\r\nthree\r\n", "one\r\nTWO\r\nthree\r\nfour\r\n", id="dos"),
        pytest.param("one\n\ttwo\tend\nthree\n", "one\n\tTWO\tend\nthree\n", id="tabs"),
        pytest.param("a = '😀é'\nb = '漢字'\nc = 1\n", "a = '😀é'\nb = '漢字😀'\nc = 1\n", id="wide characters"),
        pytest.param("one\ntwo\nthree", "one\ntwo\nTHREE", id="no final newline"),
        pytest.param("one\ntwo\nthree", "one\ntwo\nthree\nfour", id="lines after a last one without its end"),
        pytest.param("one\ntwo\nthree\n", "one\ntwo\nthree\nfour\nfive\n", id="lines at the end"),
        pytest.param("one\ntwo\nthree\n", "zero\none\ntwo\nthree\n", id="lines at the beginning"),
        pytest.param("one\ntwo\r\nthree\n", "one\nTWO\r\nthree\n", id="mixed ends"),
        pytest.param("one\ntwo\nthree\n", "one\nthree\n", id="a line that goes"),
        pytest.param("\ufeffone\ntwo\nthree\n", "\ufeffone\nTWO\nthree\n", id="byte-order mark"),
    ],
)
def test_the_file_is_right_to_the_byte(neovim: Neovim, before: str, after: str) -> None:
    editor = neovim(before.encode(), config="vim.o.fixendofline = false")
    ask_and_wait(editor, after.removeprefix("\ufeff"))
    editor.command("SpecEditAcceptAll")
    assert editor.saved() == after.encode()
    editor.command("normal! u")
    assert editor.saved() == before.encode()


def test_an_empty_buffer_is_filled(neovim: Neovim) -> None:
    editor = neovim("")
    ask_and_wait(editor, "one\ntwo\n")
    assert added(editor) == ["one", "two"]
    editor.command("SpecEditAcceptAll")
    assert editor.saved() == b"one\ntwo\n"


def test_lines_before_the_first_one_are_seen(neovim: Neovim) -> None:
    editor = neovim("one\ntwo\nthree\n")
    ask_and_wait(editor, "new\none\ntwo\nthree\n")
    rows = editor.until(lambda: [row for row in editor.screen().splitlines() if "new" in row or "one" in row])
    assert len(rows) == 2
    assert "new" in rows[0]


def test_tabs_and_wide_characters_stand_in_the_preview_as_they_would_in_the_text(neovim: Neovim) -> None:
    editor = neovim("a\nb\nc\n", name="a.txt", config="vim.o.tabstop = 8")
    ask_and_wait(editor, "a\n\t漢\tend\nc\n")
    assert added(editor) == ["        漢      end"]


def test_cancelling_stops_the_model(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.2))
    ask(editor, changed(BEFORE, 3, 18))
    assert ":SpecEditCancel" in editor.until(lambda: header(editor))
    editor.command("SpecEditAccept")
    editor.told("still writing")
    editor.command("SpecEditCancel")
    editor.told("stays as it is")
    assert editor.extmarks("specedit.preview") == []
    ended = editor.until(lambda: editor.asked("ended"))
    assert ended[0]["finish"] == "cancelled"
    assert editor.text() == BEFORE


def test_how_far_the_model_is_stands_over_the_part(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.1))
    ask(editor, changed(BEFORE, 3, 18))
    editor.until(lambda: "1 change so far" in header(editor))
    editor.until(lambda: "50%" <= header(editor).split("  ")[1][:3] <= "99%")
    editor.until(lambda: "accept all :SpecEditAcceptAll" in header(editor))


def test_key_maps_of_the_user_stand_in_the_hints(neovim: Neovim) -> None:
    config = (
        "vim.keymap.set('n', 'ga', '<Plug>(specedit-accept)') vim.keymap.set('n', 'gA', '<Cmd>SpecEditAcceptAll<CR>')"
    )
    editor = neovim(BEFORE, config=config)
    ask_and_wait(editor, changed(BEFORE, 3, 8))
    editor.keys("8G")
    editor.until(lambda: "2 of 2  accept ga  reject :SpecEditReject" in editor.screen())
    assert "accept all gA" in header(editor)
    editor.keys("ga")
    assert editor.text() == changed(BEFORE, 8)


def test_a_code_action_is_previewed_too(neovim: Neovim) -> None:
    editor = neovim("def f(a):\n    return a\n", script=Script(answers=["```\ndef f(a: int):\n    return a\n```"]))
    editor.lua(
        """vim.lsp.buf.code_action({ apply = true, filter = function(action)
             return action.title:find('type hints') ~= nil
           end })"""
    )
    ready(editor)
    assert added(editor) == ["def f(a: int):"]
    assert editor.text() == "def f(a):\n    return a\n"
    editor.command("SpecEditAccept")
    assert editor.text() == "def f(a: int):\n    return a\n"


def test_another_answer_takes_the_place_of_the_first(neovim: Neovim) -> None:
    answers = [f"```\n{BEFORE.replace('line 3', word)}```" for word in ("first", "second", "third")]
    editor = neovim(BEFORE, script=Script(answers=answers))
    editor.command("%SpecEdit change it")
    editor.until(lambda: added(editor) == ["first"])
    editor.command("SpecEditRegenerate")
    editor.until(lambda: added(editor) == ["second"])
    editor.command("SpecEditRejectAll")
    assert added(editor) == []
    editor.command("SpecEditRegenerate")
    editor.until(lambda: added(editor) == ["third"])
    editor.command("SpecEditAccept")
    assert editor.text() == BEFORE.replace("line 3", "third")


def test_with_a_bang_all_changes_are_made_at_once(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask(editor, changed(BEFORE, 3, 8), bang="!")
    editor.until(lambda: editor.text() == changed(BEFORE, 3, 8))
    editor.command("normal! u")
    assert editor.text() == BEFORE


def test_with_a_bang_nothing_is_called_made_that_was_refused(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.1))
    ask(editor, changed(BEFORE, 3, 8), bang="!")
    editor.until(lambda: removed(editor))
    editor.command("setlocal readonly")
    editor.told("read-only")
    assert removed(editor) == [3, 8]
    assert not any("takes all of it back" in message for message in editor.messages())
    assert editor.text() == BEFORE


def test_rewrites_in_several_places_are_decided_on_apart(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(seconds_per_chunk=0.05))
    ask(editor, "first\nline 2\n", "1,2")
    ask(editor, "line 19\nlast\n", "19,20")
    editor.until(lambda: removed(editor) == [1, 20] and editor.lua("return #_G.notified") >= 2)
    editor.keys("10G")
    editor.command("SpecEditAcceptAll")
    assert editor.text() == BEFORE.replace("line 20", "last")
    assert removed(editor) == [1]
    editor.command("SpecEditRejectAll")
    assert editor.extmarks("specedit.preview") == []


def test_a_rewrite_in_the_place_of_another_takes_it(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8))
    ask(editor, "line 2\nother\n", "2,3")
    editor.until(lambda: added(editor) == ["other"])
    assert removed(editor) == [3]


def test_next_and_previous_go_around(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8, 13))
    places = []
    for command in ("Next", "Next", "Next", "Next", "Previous"):
        editor.keys(f":SpecEdit{command}<CR>")
        places.append(editor.cursor()[0])
    assert places == [3, 8, 13, 3, 13]
    assert "change 3 of 3" in editor.screen()
    editor.keys("<C-o>")
    assert editor.cursor()[0] == 3


@pytest.mark.parametrize(
    ("keys", "asked_lines"),
    [("2Gv3G$", "2-3"), ("2GVj", "2-3"), ("2G<C-v>3G", "2-3"), ("3G$vk0", "2-3")],
)
def test_any_kind_of_selection_can_be_rewritten(neovim: Neovim, keys: str, asked_lines: str) -> None:
    config = "vim.keymap.set('x', 'ge', '<Plug>(specedit-rewrite)')"
    editor = neovim(BEFORE, config=config)
    editor.keys(f"{keys}ge")
    editor.until(lambda: f"Rewrite lines {asked_lines}" in editor.screen())
    editor.keys("do it<CR>")
    editor.until(lambda: editor.asked())
    part = editor.asked()[0]["prompt"][-1]
    assert "line 2\nline 3" in part
    editor.until(lambda: header(editor))
    assert f"lines {asked_lines}" in header(editor)


def test_without_a_selection_the_function_at_the_cursor_is_meant(neovim: Neovim) -> None:
    editor = neovim("x = 1\n\n\ndef area(w, h):\n    return w * h\n")
    editor.command("5")
    ask(editor, "def area(w, h):\n    return h * w\n", "")
    editor.until(lambda: "function area" in header(editor) and "1 change" in header(editor))
    assert removed(editor) == [5]


def test_what_is_refused_is_told_with_what_to_do(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask(editor, BEFORE)
    assert "not rewritten" in editor.told("the model changed nothing")
    assert editor.extmarks("specedit.preview") == []


def test_an_engine_that_fails_at_once_leaves_nothing_on_the_screen(neovim: Neovim) -> None:
    editor = neovim(BEFORE, script=Script(error="the model is gone"))
    ask(editor, "")
    editor.told("the model is gone")
    assert editor.extmarks("specedit.preview") == []


@pytest.mark.parametrize(("option", "words"), [("nomodifiable", "not modifiable"), ("readonly", "read-only")])
def test_a_buffer_that_takes_no_change_is_told_of(neovim: Neovim, option: str, words: str) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3))
    editor.command(f"setlocal {option}")
    editor.command("SpecEditAccept")
    editor.told(words)
    assert editor.text() == BEFORE
    editor.lua("_G.notified = {}")
    ask(editor, "x")
    editor.told(words)
    assert len(editor.asked()) == 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("vim.cmd('edit!')", "was read again"),
        ("vim.cmd('enew | bwipeout! #')", "was closed"),
        ("vim.lsp.get_clients({ name = 'specedit' })[1]:stop(true)", "the language server has ended"),
    ],
)
def test_what_can_be_accepted_no_more_vanishes_with_one_message(neovim: Neovim, how: str, words: str) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3))
    editor.lua(how)
    editor.told(words)
    assert editor.extmarks("specedit.preview") == []
    assert sum("did not accept" in message for message in editor.messages()) == 1


def test_marks_cursor_and_folds_elsewhere_stay(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    editor.command("15mark a")
    editor.command("16,18fold")
    ask_and_wait(editor, changed(BEFORE, 3, 8, to="new {0}\nand {0}"))
    editor.keys("20G$")
    editor.command("SpecEditAcceptAll")
    assert editor.nvim.current.line == "line 20"
    assert editor.lua("return vim.api.nvim_buf_get_mark(0, 'a')[1]") == 17
    assert editor.lua("return { vim.fn.foldclosed(18), vim.fn.foldclosedend(18) }") == [18, 20]


def test_the_users_own_events_tell_of_changes_and_ends(neovim: Neovim) -> None:
    config = """_G.events = {}
    vim.api.nvim_create_autocmd('User', { pattern = 'SpecEdit*', callback = function(event)
      table.insert(_G.events, { event.match, event.data and event.data.count, event.data and event.data.outcome })
    end })"""
    editor = neovim(BEFORE, config=config)
    ask_and_wait(editor, changed(BEFORE, 3))
    editor.command("SpecEditAccept")
    events: list[Any] = editor.lua("return vim.tbl_map(function(e) return vim.inspect(e) end, _G.events)")
    assert any("SpecEditHunks" in event and "1" in event for event in events)
    assert any("SpecEditEnd" in event and "ready" in event for event in events)
    assert any("SpecEditEnd" in event and "decided" in event for event in events)


def test_two_changes_accepted_by_one_key_are_two_steps_to_undo(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8))
    editor.lua("local rewrite = require('specedit.rewrite') rewrite.accept() rewrite.accept()")
    assert editor.text() == changed(BEFORE, 3, 8)
    editor.command("normal! u")
    assert editor.text() == changed(BEFORE, 3)


def test_lines_opened_beside_a_change_leave_it_as_it_is(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    ask_and_wait(editor, changed(BEFORE, 3, 8))
    editor.keys("3Gobelow<Esc>3GOabove<Esc>")
    editor.until(lambda: removed(editor) == [4, 10])
    editor.command("SpecEditAcceptAll")
    assert editor.text() == changed(BEFORE, 3, 8).replace("changed 3\n", "above\nchanged 3\nbelow\n")


def test_what_the_server_tells_before_it_answers_is_not_lost(neovim: Neovim) -> None:
    editor = neovim(BEFORE)
    editor.lua(
        """local inbox, sessions = require('specedit.inbox'), require('specedit.sessions')
        local ctx = { client_id = vim.lsp.get_clients({ name = 'specedit' })[1].id }
        local bufnr = vim.api.nvim_get_current_buf()
        local session = require('specedit.session').new(bufnr, ctx.client_id, 'token', 'do', false)
        inbox.await(ctx.client_id)
        local told = { session = '7', outcome = 'refused', reason = 'no engine', fix = 'start one' }
        require('specedit.rewrite').on_end(told, ctx)
        local hand_over = inbox.answered(ctx.client_id)
        sessions.add(session)
        local range = { start = { line = 0, character = 0 }, ['end'] = { line = 2, character = 0 } }
        session:begin({ session = '7', version = vim.lsp.util.buf_versions[bufnr], range = range, label = 'it' })
        hand_over(session)"""
    )
    editor.told("no engine; start one")
    assert editor.lua("return #require('specedit.sessions').of(vim.api.nvim_get_current_buf())") == 0
