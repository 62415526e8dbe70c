"""The help documents all that there is, as the running editor has it."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.editors.nvim.harness import Editor
from tests.editors.nvim.home import PLUGIN

Neovim = Callable[..., Editor]

HELP = PLUGIN / "doc/specedit.txt"
README = PLUGIN / "README.md"

LISTED = """
local found = { commands = vim.tbl_keys(vim.api.nvim_get_commands({})), plugs = {}, highlights = {} }
for _, mode in ipairs({ 'n', 'x', 'i' }) do
  for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
    if map.lhs:find('(specedit', 1, true) then found.plugs[map.lhs] = true end
  end
end
for name in pairs(vim.api.nvim_get_hl(0, {})) do
  if name:find('^SpecEdit') then table.insert(found.highlights, name) end
end
found.plugs = vim.tbl_keys(found.plugs)
return found
"""


def tags() -> set[str]:
    return set(re.findall(r"(?<=\*)[^* \t\n]+(?=\*)", HELP.read_text()))


def test_every_command_mapping_and_colour_is_documented(neovim: Neovim) -> None:
    editor = neovim()
    found = editor.lua(LISTED)
    commands = [name for name in found["commands"] if name.startswith("SpecEdit")]
    assert len(commands) >= 12
    assert {f":{name}" for name in commands} <= tags()
    assert len(found["plugs"]) >= 17
    assert set(found["plugs"]) <= tags()
    colours = HELP.read_text().partition("*specedit-highlights*")[2].partition("=====")[0]
    assert set(found["highlights"]) == set(re.findall(r"^SpecEdit\w+", colours, re.MULTILINE))


def test_what_is_documented_exists(neovim: Neovim) -> None:
    editor = neovim()
    found = editor.lua(LISTED)
    named = {tag for tag in tags() if tag.startswith((":", "<Plug>"))}
    assert named <= {f":{name}" for name in found["commands"]} | set(found["plugs"])
    in_readme = set(re.findall(r":(?:\[range\])?(SpecEdit\w*)", README.read_text()))
    assert in_readme == {name for name in found["commands"] if name.startswith("SpecEdit")}
    for module, name in re.findall(r"require\('(specedit[\w.]*)'\)\.(\w+)\(", HELP.read_text() + README.read_text()):
        assert editor.lua("local module, name = ... return type(require(module)[name])", module, name) == "function"


def test_options(neovim: Neovim) -> None:
    """The block of all options is what `setup` takes, and each stands in the list below with what it does."""
    editor = neovim()
    text = HELP.read_text().partition("*specedit-options*")[2].partition("*specedit-functions*")[0]
    block, _, described = text.partition("How the server is started ~")
    shown = block.partition("setup({\n")[2].partition("\n    })")[0]
    refused = "local ok, problem = pcall(require('specedit.config').setup, ...) return problem"
    groups = {"inline", "rewrite", "next_edit", "preview", "prompt"}
    keys: set[str] = set()
    group = ""
    for line in shown.splitlines():
        if match := re.match(r" {6}(\w+) = \{$", line):
            group = match[1]
        elif match := re.match(r" {8}(\w+) = ", line):
            keys.add(f"{group}.{match[1]}")
        elif match := re.match(r" {6}(\w+) = ", line):
            keys.add(match[1])
    known = set()
    for name in ["", *groups]:
        wrong = {name: {"zzzzzzzzzzzz": 1}} if name else {"zzzzzzzzzzzz": 1}
        said = str(editor.lua(refused, wrong))
        names = said.partition("It may be one of: ")[2].partition(".\n")[0].split(", ")
        known |= {f"{name}.{each}" if name else each for each in names if each not in groups}
    assert keys == known
    assert set(re.findall(r"^([a-z_]+(?:\.[a-z_]+)?)(?= |$)", described, re.MULTILINE)) == known
    assert editor.lua(f"return pcall(require('specedit.config').setup, {{\n{shown}\n}})") is True


def test_events_and_tags(neovim: Neovim) -> None:
    editor = neovim(files={"doc/specedit.txt": HELP.read_text()})
    events = set()
    for file in (PLUGIN / "lua").rglob("*.lua"):
        events |= set(re.findall(r"'(SpecEdit(?:Hunks|End|Status)\w*)'", file.read_text()))
    assert events == {"SpecEditHunks", "SpecEditEnd", "SpecEditStatus"}
    assert events <= tags()
    editor.command("helptags doc")
    editor.command("set rtp^=.")
    for tag in tags():
        editor.nvim.command(f"help {tag}")
    for link in re.findall(r"\|([^| \n]+)\|", HELP.read_text()):
        editor.nvim.command(f"help {link}")
    assert max(map(len, HELP.read_text().splitlines())) <= 78
