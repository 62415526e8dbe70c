"""What the extension's package.json promises is what the server takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specedit import __version__
from specedit_lsp import options

EXTENSION = Path(__file__).parents[2] / "editors/vscode"
PACKAGE: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())
SETTINGS: dict[str, dict[str, Any]] = {
    name.removeprefix("specedit."): setting
    for part in PACKAGE["contributes"]["configuration"]
    for name, setting in part["properties"].items()
}
OF_THE_EXTENSION = {"server.path", "server.interpreter", "server.environment", "trace.server", "rewrite.preview"}


def _options(part: msgspec.Struct = options.DEFAULTS, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, msgspec.Struct):
            yield from _options(value, f"{prefix}{field.encode_name}.")
        else:
            yield prefix + field.encode_name, value


OPTIONS = dict(_options())


def _nested(name: str, value: Any) -> dict[str, Any]:
    *groups, last = name.split(".")
    found = {last: value}
    for group in reversed(groups):
        found = {group: found}
    return found


def _set(name: str, value: Any) -> tuple[Any, tuple[str, ...]]:
    """What an option is after it was given, and what the server says of it."""
    found, warnings = options.parse(_nested(name, value), "a test")
    return dict(_options(found))[name], warnings


def test_every_option_is_a_setting_and_every_setting_is_known() -> None:
    assert set(SETTINGS) == set(OPTIONS) | OF_THE_EXTENSION


@pytest.mark.parametrize("name", OPTIONS)
def test_the_defaults_are_the_servers(name: str) -> None:
    given = SETTINGS[name]["default"]
    # VS Code's editor of settings has no text that may also be null; the server takes an empty one for none.
    assert (given or None if SETTINGS[name]["type"] == "string" else given) == OPTIONS[name]
    assert _set(name, given) == (OPTIONS[name], ())


@pytest.mark.parametrize("name", OPTIONS)
def test_only_the_user_sets_what_only_the_user_may(name: str) -> None:
    is_users_own = name in options._USERS_OWN
    assert SETTINGS[name]["scope"] == ("machine" if is_users_own else "resource")


@pytest.mark.parametrize("name", [name for name in OPTIONS if {"minimum", "maximum"} & SETTINGS[name].keys()])
def test_the_bounds_are_the_servers(name: str) -> None:
    setting = SETTINGS[name]
    for bound, outside in (("minimum", -1), ("maximum", 1)):
        if bound in setting:
            assert _set(name, setting[bound]) == (setting[bound], ())
            assert _set(name, setting[bound] + outside)[1]


@pytest.mark.parametrize("name", [name for name in OPTIONS if "enum" in SETTINGS[name]])
def test_the_choices_are_the_servers(name: str) -> None:
    for choice in SETTINGS[name]["enum"]:
        assert _set(name, choice) == (choice, ())
    wanted = ", ".join(sorted(SETTINGS[name]["enum"]))
    assert f"one of: {wanted}." in _set(name, "other")[1][0]


def test_a_folder_that_is_not_trusted_says_not_what_is_run() -> None:
    restricted = PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    in_workspaces = {f"specedit.{name}" for name, setting in SETTINGS.items() if setting["scope"] != "machine"}
    assert set(restricted) == {name for name in in_workspaces if name.startswith("specedit.server.")}


def test_the_versions_are_the_same() -> None:
    lock = json.loads((EXTENSION / "package-lock.json").read_text())
    assert PACKAGE["version"] == lock["version"] == lock["packages"][""]["version"] == __version__


def test_versions_of_packages_are_exact() -> None:
    wanted = {**PACKAGE["dependencies"], **PACKAGE["devDependencies"]}
    assert set(PACKAGE["dependencies"]) == {"vscode-languageclient"}
    assert all(version[0].isdigit() for version in wanted.values())


def test_every_command_in_a_menu_or_on_a_key_is_there() -> None:
    contributes = PACKAGE["contributes"]
    commands = {command["command"] for command in contributes["commands"]}
    used = {entry["command"] for menu in contributes["menus"].values() for entry in menu}
    assert used | {binding["command"] for binding in contributes["keybindings"]} <= commands


def test_every_file_that_is_named_is_there() -> None:
    steps = [step for walkthrough in PACKAGE["contributes"]["walkthroughs"] for step in walkthrough["steps"]]
    named = [PACKAGE["icon"], *(step["media"]["markdown"] for step in steps)]
    assert [name for name in named if not (EXTENSION / name).is_file()] == []
