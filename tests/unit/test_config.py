import platformdirs
import pytest

from specedit.config import Settings, cache_dir, load_settings, server_url
from specedit.errors import ConfigError


@pytest.fixture
def load(tmp_path):
    user_file = tmp_path / "user" / "config.toml"
    project = tmp_path / "project"
    user_file.parent.mkdir()
    project.mkdir()

    def load(user="", project_toml=None, pyproject=None, env=None, **flags):
        user_file.write_text(user)
        if project_toml is not None:
            (project / "specedit.toml").write_text(project_toml)
        if pyproject is not None:
            (project / "pyproject.toml").write_text(pyproject)
        return load_settings(project, env=env or {}, user_file=user_file, flags=flags)

    return load


def test_without_any_source_the_defaults_hold(tmp_path):
    assert load_settings(tmp_path, env={}, user_file=tmp_path / "none.toml") == Settings()


def test_the_user_file_is_where_the_platform_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_config_dir", lambda name: str(tmp_path / name))
    (tmp_path / "specedit").mkdir()
    (tmp_path / "specedit" / "config.toml").write_text('model = "mine"')
    assert load_settings(tmp_path, env={}).model == "mine"


def test_later_sources_win_one_setting_at_a_time(load):
    user, project = (
        "temperature = 0.1\ntop_p = 0.1\nmax_new_tokens = 1\ndraft_budget = 1",
        "top_p = 0.2\nmax_new_tokens = 2",
    )
    settings = load(user, project + "\ndraft_budget = 2", env={"SPECEDIT_MAX_NEW_TOKENS": "3"}, draft_budget=4)
    assert (settings.temperature, settings.top_p, settings.max_new_tokens, settings.draft_budget) == (0.1, 0.2, 3, 4)


def test_flags_not_given_change_nothing(load):
    assert load("temperature = 0.5", temperature=None).temperature == 0.5


def test_pyproject_is_read_where_there_is_no_file_of_our_own(load):
    assert load(pyproject="[tool.specedit]\ntemperature = 0.5").temperature == 0.5
    assert load(project_toml="", pyproject="[tool.specedit]\ntemperature = 0.5").temperature == 0.0


@pytest.mark.parametrize("pyproject", ["[project]\nname = 'x'", "[broken", "[tool]\nother = 1"])
def test_a_pyproject_that_is_not_about_specedit_is_left_alone(load, pyproject):
    assert load(pyproject=pyproject) == Settings()


def test_tool_specedit_must_be_a_table(load):
    with pytest.raises(ConfigError, match=r"pyproject\.toml.*table"):
        load(pyproject="[tool]\nspecedit = 1")


@pytest.mark.parametrize(
    "key",
    [
        "engine",
        "api_key",
        "send_prediction",
        "engine_timeout_seconds",
        "model",
        "model_paths",
        "commands",
        "secret_patterns",
        "max_file_bytes",
        "device",
        "allow_ignored",
        "allow_deletions",
        "allow_syntax_errors",
    ],
)
def test_a_project_may_not_set_what_is_the_users_to_decide(load, key):
    with pytest.raises(ConfigError, match=rf"specedit\.toml sets '{key}', which a project may not.*SPECEDIT_"):
        load(project_toml=f'{key} = "x"')


def test_the_user_may(load):
    settings = load('model = "m"\nallow_ignored = true\nsecret_patterns = ["/private/"]')
    assert (settings.model, settings.allow_ignored, settings.secret_patterns) == ("m", True, ("/private/",))


def test_an_unknown_key_is_refused_with_its_file_and_a_near_name(load):
    with pytest.raises(ConfigError, match=r"config\.toml sets 'temprature'.*Did you mean temperature"):
        load("temprature = 1")
    with pytest.raises(ConfigError, match=r"specedit\.toml sets 'max_tokens'.*max_new_tokens"):
        load(project_toml="max_tokens = 1")


@pytest.mark.parametrize(
    "line",
    [
        "temperature = -1",
        "temperature = nan",
        "temperature = inf",
        "top_p = 0",
        "top_p = 1.1",
        "max_new_tokens = 0",
        'max_new_tokens = "5"',
        "draft_budget = -1",
        "draft_budget = true",
        'dtype = "int3"',
        "secret_patterns = ['!']",
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_file_and_key(load, line):
    with pytest.raises(ConfigError, match=rf"config\.toml .*{line.split()[0]}"):
        load(line)


@pytest.mark.parametrize("text", ["[broken", 'model = "\\q"', "model = "])
def test_a_file_that_is_no_toml_is_refused_by_name(load, text):
    with pytest.raises(ConfigError, match=r"config\.toml is not valid TOML"):
        load(text)


def test_the_environment_gives_text_that_is_read_as_the_setting_needs_it(load):
    settings = load(
        env={
            "SPECEDIT_TEMPERATURE": "0.5",
            "SPECEDIT_DRAFT_BUDGET": "8",
            "SPECEDIT_ALLOW_IGNORED": "true",
            "SPECEDIT_MODEL": "123",
            "SPECEDIT_SECRET_PATTERNS": "a:b",
            "SPECEDIT_TOP_P": "",
        }
    )
    expected = Settings(temperature=0.5, draft_budget=8, allow_ignored=True, model="123", secret_patterns=("a", "b"))
    assert settings == expected


def test_a_misspelt_variable_is_refused_and_a_foreign_one_is_not(load):
    with pytest.raises(ConfigError, match="SPECEDIT_TEMPRATURE"):
        load(env={"SPECEDIT_TEMPRATURE": "1"})
    with pytest.raises(ConfigError, match="SPECEDIT_TEMPERATURE sets temperature to 'hot'"):
        load(env={"SPECEDIT_TEMPERATURE": "hot"})
    assert load(env={"SPECEDIT_CACHE": "/x", "MODEL": "y"}) == Settings()


def test_settings_do_not_change(load):
    with pytest.raises(AttributeError):
        load().model = "x"


def test_drafters_come_from_every_source(load):
    assert load().drafters == ("cursor", "replay", "lookup", "ngram")
    assert load('drafters = ["cursor"]').drafters == ("cursor",)
    assert load(project_toml='drafters = ["replay", "cursor"]').drafters == ("replay", "cursor")
    assert load(env={"SPECEDIT_DRAFTERS": "lookup,ngram"}).drafters == ("lookup", "ngram")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": 'drafters = ["cursor", "medusa"]'}, "'medusa'"),
        ({"env": {"SPECEDIT_DRAFTERS": "medusa"}}, "'medusa'"),
        ({"project_toml": "drafters = []"}, "draft_budget to 0"),
        ({"user": 'drafters = "cursor"'}, "drafters"),
    ],
)
def test_unknown_drafters_are_refused_with_those_that_there_are(load, given, said):
    with pytest.raises(ConfigError, match=said) as caught:
        load(**given)
    if "'" in said:
        assert "cursor, replay, lookup, ngram" in str(caught.value)


def test_the_cache_lies_where_the_user_says_else_where_the_platform_has_it(tmp_path, monkeypatch):
    assert cache_dir({"SPECEDIT_CACHE": str(tmp_path)}) == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir({"SPECEDIT_CACHE": "~/models"}) == tmp_path / "models"
    monkeypatch.chdir(tmp_path)
    assert cache_dir({"SPECEDIT_CACHE": "here"}) == tmp_path / "here"
    for unset in ({}, {"SPECEDIT_CACHE": ""}):
        assert cache_dir(unset) == platformdirs.user_cache_path("specedit")


def test_an_engine_is_an_address_or_a_place(load):
    for engine in ("http://gpu:8000", "https://host/path/v1", "http://[::1]:1", "local", "shared"):
        assert load(env={"SPECEDIT_ENGINE": engine}).engine == engine
    for engine, said in (
        ("gpu:8000", "http://"),
        ("remote", '"local" or "shared"'),
        ("http://me:pw@gpu", "SPECEDIT_API_KEY"),
    ):
        with pytest.raises(ConfigError, match=rf"SPECEDIT_ENGINE sets engine.*{said}") as caught:
            load(env={"SPECEDIT_ENGINE": engine})
        assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://Host:8080/v1/", "http://host:8080"),
        ("https://host/api/v1", "https://host/api"),
        ("http://host/", "http://host"),
        (" http://[::1]:8080 ", "http://[::1]:8080"),
        ("http://host/v1x", "http://host/v1x"),
    ],
)
def test_an_address_is_what_paths_are_appended_to(given, url):
    assert server_url(given) == url


def test_the_key_is_never_shown(load):
    settings = load('api_key = "sk-secret"')
    assert settings.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)
    assert "sk-secret" not in f"{settings}"
    for wrong in ('api_key = "sk-secret\\n"', 'api_key = ["sk-secret"]', 'api_key = "sk secret"', 'api_key = ""'):
        with pytest.raises(ConfigError, match=r"config\.toml sets api_key to something that is no key") as caught:
            load(wrong)
        assert "secret" not in str(caught.value)


def test_the_patience_with_a_server_is_in_seconds(load):
    assert load(env={"SPECEDIT_ENGINE_TIMEOUT_SECONDS": "2.5"}).engine_timeout_seconds == 2.5
    with pytest.raises(ConfigError, match="engine_timeout_seconds"):
        load("engine_timeout_seconds = 0")
