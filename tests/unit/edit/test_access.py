import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specedit.edit.access import ignored_by, secret_rule


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".ENV",
        ".env.local",
        "server.pem",
        "tls.KEY",
        "id_rsa",
        "id_ed25519.bak",
        "store.p12",
        ".netrc",
        ".npmrc",
        "credentials",
        "Credentials.json",
        "secrets.yaml",
        "client_secret_42.json",
        "service-account-7.json",
        "prod.env",
        ".docker/config.json",
        "vault.kdbx",
        ".aws/config",
        ".SSH/known_hosts",
        ".git/config",
        "deep/.gnupg/x/y",
    ],
)
def test_secrets_are_known_by_name(name):
    assert secret_rule(Path("/p") / name, Path("/p"))


@pytest.mark.parametrize(
    "name",
    [
        ".env.example",
        ".env.sample",
        "environment.py",
        "keys.py",
        "aws/config",
        "src/secret_santa.py",
        "credentials.go",
        "secrets.py",
    ],
)
def test_other_names_are_no_secrets(name):
    assert secret_rule(Path("/p") / name, Path("/p")) is None


def test_the_user_can_name_more_secrets():
    patterns = ["/Private/", "*.tfstate", "!ok.tfstate"]
    assert secret_rule(Path("/p/private/a.py"), Path("/p"), patterns) == "/Private/"
    assert secret_rule(Path("/p/x/Main.TFSTATE"), Path("/p"), patterns) == "*.tfstate"
    assert secret_rule(Path("/p/x/private/a.py"), Path("/p"), patterns) is None


def test_a_directory_above_the_root_can_be_secret():
    assert secret_rule(Path("/home/u/.aws/config"), Path("/home/u/.aws")) == ".aws/"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "a" / "b").mkdir(parents=True)
    return root


PATTERNS = st.lists(
    st.sampled_from(
        [
            "*",
            "!*",
            "a/",
            "!a/",
            "/a",
            "b",
            "!b",
            "a/*",
            "!a/b",
            "a/b/",
            "*.py",
            "!*.py",
            "!*/",
            "**/b",
            "a/**",
            "!a/**",
            "**",
            "!**",
            "* ",
            "/**",
            "!**/",
            "a/**/b",
            "x.py",
            "!x.py",
            "/x.py",
            "# x.py",
            "\\#x",
            "",
            " ",
            "x.py  ",
            "!",
            "[",
            "[x].py",
            "?.py",
            "x.py\r",
        ]
    ),
    max_size=4,
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(exclude=PATTERNS, top=PATTERNS, nested=PATTERNS)
@example(exclude=[], top=["*", "!*/", "!*.py"], nested=[])
@example(exclude=[], top=["a/*", "!a/b"], nested=["x.py"])
@example(exclude=["*.py"], top=["!*.py"], nested=[])
@example(exclude=[], top=["b"], nested=["!b"])
def test_ignored_is_what_git_ignores(repository, exclude, top, nested):
    (repository / ".git" / "info" / "exclude").write_text("\n".join(exclude))
    (repository / ".gitignore").write_text("\n".join(top))
    (repository / "a" / ".gitignore").write_text("\n".join(nested))
    names = ["x.py", "x.txt", "a/x.py", "a/b/x.py", "a/b/x.txt"]
    checked = subprocess.run(
        ["git", "-C", repository, "-c", "core.excludesFile=", "check-ignore", *names],
        stdout=subprocess.PIPE,
        text=True,
    )
    ours = [name for name in names if ignored_by(repository / name, repository)]
    assert ours == checked.stdout.split()


def test_a_linked_gitignore_counts_for_nothing(tmp_path):
    (tmp_path / "patterns").write_text("*\n")
    (tmp_path / ".gitignore").symlink_to("patterns")
    assert ignored_by(tmp_path / "a.py", tmp_path) is None
