"""What a user sets in the editor, and what comes of it there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.harness import CAPABILITIES, Editor, scripted

QUICK = {"inline": {"debounceMs": 0}, "nextEdit": {"enabled": False}}


def completes(editor: Editor, uri: str) -> bool:
    editor.open(uri, "x = \n")
    found = bool(editor.complete_at(uri, 0, 4))
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return found


def by_folder(settings: Mapping[str | None, Any]) -> Any:
    return lambda params: [settings.get(item.get("scopeUri")) for item in params["items"]]


def settled(editor: Editor, times: int) -> None:
    """Wait until the settings were asked for so often, and the answer was taken."""
    editor.until(lambda: len(editor.asked("workspace/configuration")) >= times)
    editor.command("specedit.statistics")


def test_each_folder_has_its_own_options_as_they_come_and_go(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    settings: dict[str | None, Any] = {
        None: {"inline": {"enabled": True}},
        one.as_uri(): {"inline": {"enabled": False}},
        other.as_uri(): {"inline": {"maxNewTokens": 32}},
    }
    inside, outside, elsewhere = (one / "a.py").as_uri(), (other / "a.py").as_uri(), "untitled:a.py"
    with scripted(tmp_path) as editor:
        editor.answers["workspace/configuration"] = by_folder(settings)
        editor.initialize(one, other, options=QUICK)
        settled(editor, 1)
        (registered,) = editor.asked("client/registerCapability")[0]["registrations"]
        assert registered["method"] == "workspace/didChangeConfiguration"
        asked = [item.get("scopeUri") for item in editor.asked("workspace/configuration")[0]["items"]]
        assert asked == [None, one.as_uri(), other.as_uri()]
        assert [completes(editor, uri) for uri in (inside, outside, elsewhere)] == [False, True, True]

        settings[None] = {"inline": {"enabled": False}}
        settings[one.as_uri()] = {"inline": {"enabled": True}}
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        settled(editor, 2)
        assert [completes(editor, uri) for uri in (inside, outside, elsewhere)] == [True, False, False]

        event = {"added": [], "removed": [{"uri": one.as_uri(), "name": "one"}]}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        settled(editor, 3)
        assert [completes(editor, uri) for uri in (inside, outside, elsewhere)] == [False, False, False]

        event = {"added": [{"uri": one.as_uri(), "name": "one"}], "removed": []}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        settled(editor, 4)
        assert completes(editor, inside)
        assert editor.messages == []


def test_wrong_options_are_told_once_and_the_rest_holds(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        wrong = {"inline": {"debouncems": 0, "maxNewTokens": "many"}, "colour": "red"}
        editor.answers["workspace/configuration"] = by_folder({None: wrong, tmp_path.as_uri(): wrong})
        editor.initialize(tmp_path, options={**QUICK, "inlin": {}, "logLevel": "loud"})
        settled(editor, 1)
        beginnings = [
            "initializationOptions: inlin is no option. Did you mean inline?",
            'initializationOptions: logLevel is "loud"; it must be one of',
            "the editor's settings (section specedit): inline.debouncems is no option. Did you mean inline.debounceMs?",
            'the editor\'s settings (section specedit): inline.maxNewTokens is "many"; it must be a whole number',
            "the editor's settings (section specedit): colour is no option. It may be one of: engine, ",
        ]
        editor.until(lambda: len(editor.messages) == 2)
        told = [line for message in editor.messages for line in message.splitlines()]
        for line, beginning in zip(told, beginnings, strict=True):
            assert line.startswith(beginning)
        assert all(params["type"] == 2 for params in editor.told("window/showMessage"))
        editor.until(lambda: set(told) <= {line["message"] for line in editor.told("window/logMessage")})
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        settled(editor, 2)
        assert len(editor.messages) == 2, "what was told is not told again"
        assert completes(editor, "untitled:a")


def test_a_repository_can_not_choose_the_engine(tmp_path: Path) -> None:
    brought = {
        "engine": "http://elsewhere.example/v1",
        "logFile": "/tmp/elsewhere.log",
        "rewrite": {"allowDeletions": True},
    }
    with scripted(tmp_path) as editor:
        editor.answers["workspace/configuration"] = by_folder({tmp_path.as_uri(): brought})
        editor.initialize(tmp_path, options=QUICK)
        settled(editor, 1)
        told = editor.until(lambda: editor.messages)[0].splitlines()
        assert len(told) == 3
        assert all("a repository may bring settings of its own" in message for message in told)
        editor.command("specedit.restartEngine")
        assert completes(editor, (tmp_path / "a.py").as_uri()), "by the engine that it was"


@pytest.mark.parametrize("options", [None, [], "quick", 5, {"inline": None}, {"inline": []}])
def test_options_that_are_none_stop_nothing(tmp_path: Path, options: Any) -> None:
    with scripted(tmp_path) as editor:
        params = {"processId": None, "rootUri": None, "capabilities": CAPABILITIES, "initializationOptions": options}
        assert editor.request("initialize", params)["serverInfo"]["name"] == "specedit"
        editor.notify("initialized", {})
        assert completes(editor, "untitled:a")
        assert len(editor.messages) == (options not in (None, {"inline": None}))


def test_an_editor_that_can_not_be_asked_sends_its_settings(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        editor.initialize(tmp_path, options=QUICK, capabilities={})
        assert completes(editor, "untitled:a")
        editor.notify("workspace/didChangeConfiguration", {"settings": {"specedit": {"inline": {"enabled": False}}}})
        assert not completes(editor, "untitled:a")
        editor.notify("workspace/didChangeConfiguration", {"settings": {"specedit": {}}})
        assert completes(editor, "untitled:a")
        assert editor.requests == []


def test_a_folder_that_is_no_file_and_an_old_editor_with_one_root(tmp_path: Path) -> None:
    with scripted(tmp_path) as editor:
        params = {"processId": None, "rootUri": "vscode-remote://host/project", "capabilities": {}}
        editor.request("initialize", params)
        editor.notify("initialized", {})
        assert completes(editor, "vscode-remote://host/project/a.py")
        assert editor.shutdown() == 0
