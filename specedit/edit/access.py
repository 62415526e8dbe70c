"""Which files may be shown to a model: no secrets, nothing that git ignores.

The rules look at names only; nothing is opened but `.gitignore` and its like.
"""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

#: `credentials.json` holds secrets; `credentials.py` is a program about them.
_DATA_SUFFIXES = ("", ".cfg", ".conf", ".csv", ".db", ".ini", ".json", ".properties", ".toml", ".txt", ".xml", ".y*ml")

SECRET_NAMES = (
    ".env",
    ".env.*",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "*.env",
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
    "*.ppk",
    "client_secret*.json",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
    "service?account*.json",
    "token.json",
    *(f"credentials{suffix}" for suffix in _DATA_SUFFIXES),
    *(f"secrets{suffix}" for suffix in _DATA_SUFFIXES),
)
SECRET_DIRECTORIES = frozenset({".aws", ".docker", ".git", ".gnupg", ".kube", ".ssh"})
_EXAMPLES = frozenset({".env.example", ".env.sample", ".env.template"})


def secret_rule(path: Path, root: Path, patterns: Iterable[str] = ()) -> str | None:
    """The rule by which the name of `path` is that of a secret, or None. Upper and lower case are alike.

    Args:
        path: absolute.
        root: what `patterns` are relative to.
        patterns: further secrets, as lines of a `.gitignore`. They may come only from the user's own settings.
    """
    *directories, name = (part.lower() for part in path.parts)
    for directory in directories:
        if directory in SECRET_DIRECTORIES:
            return f"{directory}/"
    for pattern in SECRET_NAMES:
        if fnmatchcase(name, pattern) and name not in _EXAMPLES:
            return pattern
    relative = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    for pattern in patterns:
        if GitIgnoreSpec.from_lines([pattern.lower()]).match_file(relative.as_posix().lower()):
            return pattern
    return None


def ignored_by(path: Path, root: Path) -> Path | None:
    """The file whose patterns make git ignore `path`, or None.

    Looked at are `.git/info/exclude` and every `.gitignore` from `root` down. As in git, the last pattern that matches
    decides, and what lies in an ignored directory can't be taken back. A file that git tracks although a pattern
    matches it counts as ignored here.

    Args:
        path: a file in `root`, absolute.
        root: the directory that holds `.git`, absolute.
    """
    relative = path.relative_to(root)
    above = [*reversed(relative.parents)]  # ., a, a/b
    sources = [
        (Path(), root / ".git" / "info" / "exclude"),
        *((directory, root / directory / ".gitignore") for directory in above),
    ]
    patterns = [(directory, source, _patterns(source)) for directory, source in sources]
    for step in (*above[1:], relative):
        verdict = None
        for directory, source, rules in patterns:
            if directory in step.parents:
                name = step.relative_to(directory).as_posix() + ("/" if step != relative else "")
                ignored = _last_match(rules, name)
                verdict = verdict if ignored is None else source if ignored else None
        if verdict:
            return verdict
    return None


def _last_match(patterns: list[GitIgnoreSpecPattern], name: str) -> bool | None:
    """Whether the last pattern that matches `name` itself, not only a directory above it, ignores or takes back."""
    for pattern in reversed(patterns):
        if pattern.regex is not None and pattern.regex.fullmatch(name):
            return pattern.include
    return None


def _patterns(source: Path) -> list[GitIgnoreSpecPattern]:
    """The patterns of a file; none where it is missing or, as for git, a link or a line that can't be understood."""
    try:
        if not stat.S_ISREG(source.lstat().st_mode):
            return []
        lines = source.read_text("utf-8-sig", "surrogateescape").split("\n")
    except OSError:
        return []
    patterns = []
    for line in lines:
        with contextlib.suppress(ValueError, re.error):
            patterns.append(GitIgnoreSpecPattern(_spelled_out(line)))
    return patterns


def _spelled_out(line: str) -> str:
    """The same to git, but matched by names where pathspec shortens the pattern to a search for prefixes."""
    sign, pattern = ("!", line[1:]) if line.startswith("!") else ("", line)
    pattern = re.sub(r"^(?:\*+|/\*\*)(/?)\s*$", r"?*\1", pattern)
    return sign + re.sub(r"/\*\*\s*$", "/**/*", pattern)
