"""Random sessions: whatever is done to the text meanwhile, accepting makes just the change, where it belongs, or none.

An oracle in the same Neovim, `oracle.lua`, follows the lines by what Neovim tells of them and judges each change made.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.editors.nvim.harness import ATTACH_SECONDS, Editor
from tests.editors.nvim.test_rewrite import Neovim
from tests.lsp.scripted_lsp import Script, obeyed

_SEEDS = range(20)
_SETUP = """{
  inline = { enabled = false },
  next_edit = { enabled = false },
  prompt = { history = false },
  rewrite = { allow_deletions = true, allow_syntax_errors = true },
}"""
_ORACLE = Path(__file__).with_name("oracle.lua").read_text()
_LINES = ["a", "b", "", "x = 1", "\tt", "é😀 = '漢'", "a\fb", "u\u2028v", "w" * 300, "    end", "b "]
_ENDS = {"unix": "\n", "dos": "\r\n"}
_ALL = "vim.api.nvim_buf_get_lines(0, 0, -1, true)"
_IS_READY = """
local sessions = require('specedit.sessions').of(vim.api.nvim_get_current_buf())
return #sessions > 0 and vim.iter(sessions):all(function(session) return session.state == 'ready' end)
"""


def an_edit(rand: random.Random) -> str:
    """Something that a user or a formatter does, in Lua."""
    first, last = sorted((rand.randint(1, 14), rand.randint(1, 14)))
    line = rand.choice(_LINES).replace("'", "")
    normal = [f"{first}normal! {keys}" for keys in (f"O{line}", f"o{line}", f"cc{line}", "A.", "J", "x", "yyp")]
    ranges = [f"{first},{last}delete", f"{first},{last}delete | undo", f"{first},{last}!cat", f"{first}copy {last}"]
    whole = ["sort", "%s/a/aa/e", "%s/ $//e", "undo", "undo", "redo", "earlier 3", "write", "edit!"]
    commands = [f"vim.cmd([[silent! {command}]])" for command in [*normal, *ranges, *whole]]
    moved = f"vim.cmd([[silent! {first}move {last}]]) oracle.moved()"
    formatted = f"vim.api.nvim_buf_set_lines(0, 0, -1, true, {_ALL})"
    return rand.choice([*commands, moved, formatted])


def an_answer(rand: random.Random, lines: list[str]) -> str:
    """What a model may make of lines."""
    lines = list(lines)
    for _ in range(rand.randint(1, 3)):
        at = rand.randint(0, len(lines))
        lines[at : at + rand.choice([0, 0, 1, 2])] = rand.choices([*_LINES, "new"], k=rand.randint(0, 2))
    return "\n".join(lines) + "\n"


class Session:
    """A file of its own, and what is done in it."""

    def __init__(self, editor: Editor, seed: int) -> None:
        """Open the file."""
        self.rand = random.Random(seed)
        self.editor = editor
        end = _ENDS[self.rand.choice(["unix", "unix", "dos"])]
        text = "".join(line + end for line in self.rand.choices(_LINES, k=self.rand.randint(0, 20)))
        self.file = editor.home.file(f"{seed}.txt", text.removesuffix(end) if self.rand.random() < 0.3 else text)
        editor.lua("vim.cmd('silent! %bwipeout!') vim.cmd.edit(...)", str(self.file))
        editor.until(editor.attached, ATTACH_SECONDS)
        editor.lua("_G.notified = {} oracle.start()")

    def run(self) -> Counter[str]:
        """Gives how often changes were made and refused."""
        counts: Counter[str] = Counter()
        self.rewrite()
        for _ in range(self.rand.randint(10, 25)):
            step = self.rand.random()
            if step < 0.1:
                self.rewrite()
            elif step < 0.4:
                self.editor.lua(an_edit(self.rand))
                self.keep()
            elif step < 0.7:
                counts[self.accept("accept" if step < 0.6 else "accept_all")] += 1
            elif step < 0.75:
                self.editor.lua("require('specedit.rewrite').reject()")
            elif step < 0.78:
                self.editor.lua("require('specedit.rewrite').cancel()")
            else:
                self.editor.lua(f"vim.wait(..., function() {_IS_READY} end, 2)", self.rand.choice([2, 30, 500]))
        self.save()
        return counts

    def lines(self) -> list[str]:
        lines: list[str] = self.editor.lua(f"return {_ALL}")
        return lines

    def keep(self) -> None:
        self.editor.lua("oracle.keep()")

    def rewrite(self) -> None:
        lines = self.lines()
        first = self.rand.randint(1, len(lines))
        last = min(len(lines), first + self.rand.randint(0, 8))
        answer = an_answer(self.rand, lines[first - 1 : last])
        self.editor.lua("vim.cmd(...)", f"{first},{last}SpecEdit {obeyed(answer)}")
        if self.rand.random() < 0.5:
            # What is typed just then is in the text before the server says where the part was.
            above = "vim.cmd([[silent! 1normal! Oabove]])"
            self.editor.lua(self.rand.choice([above, an_edit(self.rand)]))
            self.keep()
        if self.rand.random() < 0.8:
            self.editor.lua(f"vim.wait(500, function() {_IS_READY} end, 2)")

    def accept(self, how: str) -> str:
        self.editor.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", self.rand.randint(1, len(self.lines())))
        self.keep()
        before = self.lines()
        problem, became = self.editor.lua(
            f"local problem, became = oracle.{how}() return {{ problem or '', became or '' }}"
        )
        assert not problem, problem
        self.keep()
        if became == "made" and self.rand.random() < 0.5:
            after = self.lines()
            for command, expected in (("undo", before), ("redo", after)):
                self.editor.lua("vim.cmd('silent ' .. ...)", command)
                self.keep()
                assert self.lines() == expected
        return str(became)

    def save(self) -> None:
        """What is saved is what the buffer holds, with the file's own ends."""
        written = "vim.cmd('silent write') return { vim.bo.fileformat, vim.bo.endofline, " + _ALL + " }"
        fileformat, has_end, lines = self.editor.lua(written)
        end = _ENDS[fileformat]
        text = end.join(lines) + (end if has_end else "")
        assert self.file.read_bytes().decode() in ([text, ""] if lines == [""] else [text])


@pytest.mark.timeout(240)
def test_accepting_makes_the_change_where_it_belongs_or_none(neovim: Neovim) -> None:
    editor = neovim(
        "", name="a.txt", setup=_SETUP, script=Script(seconds_per_chunk=0.002), config="vim.o.fixeol = false"
    )
    editor.lua("_G.oracle = loadstring(...)()", _ORACLE)
    counts: Counter[str] = Counter()
    for seed in _SEEDS:
        try:
            counts += Session(editor, seed).run()
        except AssertionError as error:
            raise AssertionError(f"session {seed}: {error}") from None
    assert counts["made"] > len(_SEEDS) / 2
    assert not [message for message in editor.messages() if "stack traceback" in message]
