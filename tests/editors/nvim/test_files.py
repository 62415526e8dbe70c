"""The plugin as it is installed: its files, what they define, and that nothing has to be set up."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.editors.nvim.harness import ATTACH_SECONDS, Editor
from tests.editors.nvim.home import PLUGIN, Home, binary
from tests.lsp.scripted_lsp import Script, obeyed

_VERBS = "Accept Reject AcceptAll RejectAll Next Previous Cancel Regenerate Toggle Restart Log Statistics"
COMMANDS = ["SpecEdit", *(f"SpecEdit{verb}" for verb in _VERBS.split(" "))]
#: <Plug>s -> the modes in which they are mapped.
PLUGS = {
    "rewrite": "nx",
    **dict.fromkeys(["accept", "reject", "accept-all", "reject-all", "next", "previous", "cancel", "regenerate"], "n"),
    "next-edit": "ni",
    **{
        f"inline-{name}": "i"
        for name in ["accept", "accept-word", "accept-line", "next", "previous", "dismiss", "trigger"]
    },
}
MODULES = sorted(
    str(path.relative_to(PLUGIN / "lua").with_suffix("")).removesuffix("/init").replace("/", ".")
    for path in PLUGIN.glob("lua/**/*.lua")
)

#: Prints what requiring the modules and sourcing the plugin leaves behind.
_LOAD = """
vim.opt.rtp:prepend(_G.arg[1])
local function names(of)
  local found = {}
  for name in pairs(of) do found[name] = true end
  return found
end
local globals, failures, does = names(_G), {}, {}
local before = #vim.api.nvim_get_autocmds({})
for _, module in ipairs(vim.json.decode(_G.arg[2])) do
  local fine, problem = pcall(require, module)
  if not fine then failures[#failures + 1] = problem end
end
if #vim.api.nvim_get_autocmds({}) ~= before then does[#does + 1] = 'autocommands' end
if #vim.lsp.get_clients() > 0 then does[#does + 1] = 'clients' end
for _, file in ipairs(vim.api.nvim_get_runtime_file('{lsp,plugin}/specedit.lua', true)) do
  local fine, problem = pcall(dofile, file)
  if not fine then failures[#failures + 1] = problem end
end
local leaked = {}
for name in pairs(_G) do
  if not globals[name] then leaked[#leaked + 1] = name end
end
local function list(of) return #of > 0 and of or vim.empty_dict() end
io.write(vim.json.encode({ failures = list(failures), leaked = list(leaked), does = list(does) }))
"""


def nvim(version: str, home: Path, *arguments: str) -> str:
    """What Neovim prints that is started for one thing."""
    environment = Home(home, "", Script()).environment()
    argv = [str(binary(version)), "--clean", "--headless", *arguments]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_every_module_loads_and_leaves_nothing_behind(version: str, tmp_path: Path):
    assert "specedit" in MODULES
    script = tmp_path / "load.lua"
    script.write_text(_LOAD)
    left = json.loads(nvim(version, tmp_path / "home", "-l", str(script), str(PLUGIN), json.dumps(MODULES)))
    assert left == {"failures": {}, "leaked": {}, "does": {}}


def test_the_help_can_be_tagged(version: str, tmp_path: Path):
    docs = tmp_path / "doc"
    shutil.copytree(PLUGIN / "doc", docs)
    assert "E" not in nvim(version, tmp_path / "home", "-c", f"helptags {docs}", "-c", "qall!")
    tags = {line.split("\t")[0] for line in (docs / "tags").read_text().splitlines()}
    missing = {f":{name}" for name in COMMANDS} | {f"<Plug>(specedit-{name})" for name in PLUGS} | {"specedit.txt"}
    assert not missing - tags


@pytest.fixture
def unset(neovim: Callable[..., Editor]) -> Callable[..., Editor]:
    """Start an editor that has the plugin on its path, and is told no more than to use the server."""

    def start(text: str, **given: Any) -> Editor:
        return neovim(text, setup=None, config="vim.lsp.enable('specedit')", **given)

    return start


def test_nothing_has_to_be_set_up(unset: Callable[..., Editor]):
    editor = unset("a = 1\n\n\nb = 2\n", script=Script(completions=["3"]))
    editor.command(f"%SpecEdit {obeyed('a = 2' + chr(10) * 3 + 'b = 2' + chr(10))}")
    editor.until(lambda: any("SpecEditAdded" in str(mark.details) for mark in editor.extmarks()))
    editor.told("1 change")
    editor.command("SpecEditAcceptAll")
    editor.until(lambda: editor.text() == "a = 2\n\n\nb = 2\n")
    editor.keys("Goc = ")
    editor.until(lambda: "3" in editor.ghost_text())
    editor.lua("return require('specedit.inline').accept()")
    editor.until(lambda: editor.text() == "a = 2\n\n\nb = 2\nc = 3\n")


def test_what_is_mapped_and_defined(unset: Callable[..., Editor]):
    editor = unset("")
    defined = editor.nvim.api.get_commands({})
    assert {name for name in defined if name.startswith("SpecEdit")} == set(COMMANDS)
    mapped = {
        (name.removeprefix("<Plug>(specedit-").removesuffix(")"), mode)
        for mode in "nxsoict"
        for name in (entry["lhs"] for entry in editor.nvim.api.get_keymap(mode))
        if name.startswith("<Plug>(specedit-")
    }
    assert mapped == {(name, mode) for name, modes in PLUGS.items() for mode in modes}


def test_no_key_is_taken(neovim: Callable[..., Editor]):
    """Neither by the plugin, nor by its set-up, nor where the server is attached."""
    taken = """
    local keys = {}
    for _, mode in ipairs({ 'n', 'x', 's', 'o', 'i', 'c', 't' }) do
      for _, map in ipairs(vim.list_extend(vim.api.nvim_get_keymap(mode), vim.api.nvim_buf_get_keymap(0, mode))) do
        if not vim.startswith(map.lhs, '<Plug>') then keys[#keys + 1] = mode .. map.lhs end
      end
    end
    table.sort(keys)
    return keys
    """
    foreign = (
        "vim.opt.rtp:remove(vim.opt.rtp:get()[1]) vim.lsp.config('a', { cmd = { 'specedit' } }) vim.lsp.enable('a')"
    )
    without, with_plugin = neovim("", setup=None, config=foreign, attach=False), neovim("")
    without.until(lambda: without.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), ATTACH_SECONDS)
    assert with_plugin.lua(taken) == without.lua(taken)


def test_no_global_is_left_by_using_it(neovim: Callable[..., Editor]):
    keep = """
    local leaked = {}
    setmetatable(_G, {
      __newindex = function(globals, name, value)
        leaked[#leaked + 1] = name
        rawset(globals, name, value)
      end,
    })
    rawset(_G, 'leaked_globals', leaked)
    """
    editor = neovim("a = 1\nb = 2\n", config=keep, script=Script(completions=["3"]))
    editor.keys("Goc = ")
    editor.until(lambda: "3" in editor.ghost_text())
    editor.lua("return require('specedit.inline').accept_word()")
    editor.keys("<Esc>")
    editor.command(f"1SpecEdit {obeyed('a = 5' + chr(10))}")
    editor.told("1 change")
    editor.command("SpecEditNext")
    editor.command("SpecEditAccept")
    editor.until(lambda: editor.text().startswith("a = 5\n"))
    editor.command("checkhealth specedit")
    assert not [name for name in editor.lua("return leaked_globals") if "lpeg" not in name]
