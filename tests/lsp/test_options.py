from __future__ import annotations

from pathlib import Path

import pytest

from specedit_lsp.options import DEFAULTS, Options, OptionsStore, parse


def warned(given, **options):
    return parse(given, "here", **options)[1]


def test_nothing_given_is_the_defaults():
    assert parse(None, "here") == (DEFAULTS, ())
    assert parse({}, "here") == (DEFAULTS, ())


def test_names_are_written_in_camel_case():
    given = {
        "inline": {"debounceMs": 10, "invokedMaxNewTokens": 7, "multiLine": False},
        "rewrite": {"maxNewTokens": 100, "allowSyntaxErrors": True},
        "nextEdit": {"model": False},
        "warmUp": False,
        "idleExitMinutes": 5,
    }
    options, warnings = parse(given, "here")
    assert warnings == ()
    assert (options.inline.debounce_ms, options.inline.invoked_max_new_tokens, options.inline.multi_line) == (
        10,
        7,
        False,
    )
    assert (options.rewrite.max_new_tokens, options.rewrite.allow_syntax_errors) == (100, True)
    assert (options.next_edit.model, options.next_edit.enabled) == (False, True)
    assert (options.warm_up, options.idle_exit_minutes) == (False, 5.0)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"inlne": {}}, "inline"),
        ({"inline": {"debounce_ms": 3}}, "inline.debounceMs"),
        ({"nextedit": {}}, "nextEdit"),
        ({"warm_up": True}, "warmUp"),
    ],
)
def test_an_unknown_key_is_told_with_the_one_that_was_meant(given, meant):
    [warning] = warned(given)
    assert warning.startswith("here: ")
    assert warning.endswith(f"Did you mean {meant}?")


def test_a_key_like_no_other_is_told_with_all_there_are():
    [warning] = warned({"colour": "red"})
    assert "colour is no option" in warning
    assert "idleExitMinutes" in warning


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"inline": {"debounceMs": "fast"}}, ("inline.debounceMs", '"fast"', "whole number from 0 to 10000", "75")),
        ({"inline": {"enabled": 1}}, ("inline.enabled", "true or false")),
        ({"inline": {"alternatives": 11}}, ("inline.alternatives", "11", "from 1 to 10")),
        ({"inline": {"maxNewTokens": 2.5}}, ("2.5", "whole number")),
        ({"rewrite": {"temperature": -1}}, ("rewrite.temperature", "-1", "from 0 to 100")),
        ({"rewrite": {"maxNewTokens": 0}}, ("rewrite.maxNewTokens", "from 1 on or null")),
        ({"logLevel": "loud"}, ("logLevel", '"loud"', "debug", "warning")),
        ({"engine": "localhost:8080"}, ("engine", "http://127.0.0.1:8080", "shared")),
        ({"logFile": "a.log"}, ("logFile", '"a.log"', "absolute")),
        ({"logFile": "~nobody-of-that-name/a.log"}, ("logFile", "absolute")),
        ({"idleExitMinutes": 0}, ("idleExitMinutes", "above 0")),
        ({"nextEdit": True}, ("nextEdit", "object")),
        ([1], ("object",)),
        ("all", ("object",)),
    ],
)
def test_a_bad_value_is_told_with_what_is_right_and_its_default_stays(given, words):
    options, [warning] = parse(given, "here")
    assert options == DEFAULTS
    assert all(word in warning for word in words), warning


def test_the_other_keys_stay():
    options, warnings = parse(
        {"inline": {"debounceMs": None, "alternatives": 5, "enabled": "no"}, "model": "m"}, "here"
    )
    assert (options.inline.alternatives, options.inline.enabled, options.model) == (5, True, "m")
    assert len(warnings) == 1


def test_a_whole_number_may_be_written_with_a_point():
    options, warnings = parse({"inline": {"debounceMs": 20.0}}, "here")
    assert (options.inline.debounce_ms, warnings) == (20, ())


def test_what_is_empty_counts_as_not_given():
    base = Options(engine="http://box:1", model="m")
    assert parse({"engine": "", "model": None, "logFile": "", "inline": None}, "here", base=base) == (base, ())


def test_a_password_in_an_address_is_not_repeated():
    [warning] = warned({"engine": "http://me:hunter2@box"})
    assert "hunter2" not in warning
    assert "SPECEDIT_API_KEY" in warning


def test_a_long_value_is_cut():
    [warning] = warned({"logLevel": "x" * 5000})
    assert len(warning) < 300


def test_this_process_runs_no_model():
    options, [warning] = parse({"engine": "local"}, "here")
    assert options.engine == "shared"
    assert "command line" in warning


@pytest.mark.parametrize(
    "given",
    [
        {"engine": "http://evil.example"},
        {"model": "/repo/model"},
        {"warmUp": False},
        {"idleExitMinutes": 9999},
        {"logFile": "/repo/log"},
        {"logLevel": "debug"},
        {"rewrite": {"allowDeletions": True}},
        {"rewrite": {"allowSyntaxErrors": True}},
        {"rewrite": {"confirm": False}},
    ],
)
def test_a_repository_decides_nothing_that_is_for_the_user(given):
    options, [warning] = parse(given, "here", is_users_own=False)
    assert options == DEFAULTS
    assert "initializationOptions" in warning
    assert parse(given, "here")[0] != DEFAULTS


def test_an_editor_may_repeat_what_the_user_set():
    own = {"engine": "http://box:1", "idleExitMinutes": 5, "rewrite": {"confirm": False}}
    base, _ = parse(own, "here")
    assert parse({**own, "inline": {"enabled": False}}, "here", base=base, is_users_own=False)[1] == ()


# --- by folder


def store(*folders: str, own=None) -> OptionsStore:
    made = OptionsStore()
    assert made.initialize(own, folders) == []
    return made


def debounced(ms: int):
    return {"inline": {"debounceMs": ms}}


def test_the_innermost_folder_decides():
    options = store("file:///a", "file:///a/b/", "file:///c", own=debounced(1))
    given = {None: debounced(2), "file:///a": debounced(3), "file:///a/b/": debounced(4), "file:///c": None}
    assert options.configure(given) == []
    ms = {
        uri: options.for_uri(uri).inline.debounce_ms
        for uri in ("file:///a/x.py", "file:///a/b/x.py", "file:///a/bc/x.py", "file:///c/x.py", "untitled:1")
    }
    assert list(ms.values()) == [3, 4, 3, 2, 2]
    assert options.for_uri(None).inline.debounce_ms == 2
    assert options.own.inline.debounce_ms == 1


def test_a_folder_is_no_beginning_of_a_name():
    options = store("file:///project/app")
    options.configure({"file:///project/app": debounced(9)})
    assert options.for_uri("file:///project/app-old/x.py").inline.debounce_ms == 75


def test_blanks_and_escapes_are_exact():
    options = store("file:///my%20proj", "file:///my%2520proj", "file:///caf%C3%A9%231")
    options.configure(
        {"file:///my%20proj": debounced(1), "file:///my%2520proj": debounced(2), "file:///caf%C3%A9%231": debounced(3)}
    )
    assert options.for_uri("file:///my proj/a.py").inline.debounce_ms == 1
    assert options.for_uri("file:///my%2520proj/a.py").inline.debounce_ms == 2
    assert options.for_uri("file:///café%231/a.py").inline.debounce_ms == 3
    assert options.root_of("file:///my%20proj/a/b.py") == Path("/my proj")
    assert options.root_of("file:///my%2520proj/a.py") == Path("/my%20proj")


def test_folders_that_are_not_on_disk_have_options_and_no_root():
    options = store("vscode-vfs://github/me/x")
    options.configure({"vscode-vfs://github/me/x": debounced(5)})
    assert options.for_uri("vscode-vfs://github/me/x/a.py").inline.debounce_ms == 5
    assert options.for_uri("vscode-vfs://gitlab/me/x/a.py").inline.debounce_ms == 75
    assert options.root_of("vscode-vfs://github/me/x/a.py") is None


def test_the_whole_disk_may_be_a_folder():
    options = store("file:///")
    options.configure({"file:///": debounced(5)})
    assert options.for_uri("file:///a.py").inline.debounce_ms == 5
    assert options.root_of("file:///a.py") == Path("/")
    assert options.root_of("untitled:a.py") is None


def test_a_closed_folder_is_forgotten():
    options = store("file:///a")
    options.configure({"file:///a": debounced(3)})
    options.change_folders(["file:///b"], ["file:///a"])
    assert options.folders == ["file:///b"]
    assert options.for_uri("file:///a/x.py").inline.debounce_ms == 75
    options.change_folders(["file:///a"], [])
    assert options.for_uri("file:///a/x.py").inline.debounce_ms == 75


def test_settings_that_come_anew_take_the_place_of_the_old():
    options = store("file:///a", own={"inline": {"alternatives": 2}})
    options.configure({None: debounced(3), "file:///a": debounced(4)})
    options.configure({None: {}})
    assert options.for_uri("file:///a/x.py") == options.own


def test_a_warning_for_all_folders_is_given_once_and_again_when_it_is_new():
    options = store("file:///a", "file:///b")
    wrong = {"inline": {"debounceMs": "fast"}}
    assert len(options.configure({None: wrong, "file:///a": wrong, "file:///b": wrong})) == 1
    assert options.configure({None: wrong}) == []
    assert options.configure({None: {}}) == []
    assert len(options.configure({None: wrong})) == 1


def test_the_user_is_warned_when_the_editor_starts():
    [warning] = OptionsStore().initialize({"inline": {"enabeld": True}}, [])
    assert warning == "initializationOptions: inline.enabeld is no option. Did you mean inline.enabled?"
