"""The user's runtime directory: a private place for the token of servers, their records and their locks.

Whoever can write there can send edits elsewhere, and whoever can read there can use the model. So nothing in it is
trusted before it was seen to belong to this user alone.
"""

from __future__ import annotations

import os
import platform
import shlex
import stat
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from specedit.config import cache_dir
from specedit.errors import ConfigError

#: Short enough to type, long enough that nobody guesses it over a network.
SHORTEST_TOKEN_CHARS = 16


def runtime_dir(env: Mapping[str, str] = os.environ) -> Path:
    """SPECEDIT_RUNTIME, else the platform's runtime directory where that is private, else one in the cache.

    It need not exist yet, and was not checked.
    """
    chosen = env.get("SPECEDIT_RUNTIME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore")
        path = platformdirs.user_runtime_path("specedit")
        if not os.path.lexists(path.parent) or _trouble_with(path.parent) is None:
            return path
    # A home directory may be shared by several machines, whose servers have nothing to do with each other.
    return cache_dir(env) / f"run-{platform.node() or 'here'}"


def private_runtime_dir(*, create: bool = True) -> Path | None:
    """The runtime directory, checked; made if missing, or None where `create` is False.

    Raises:
        ConfigError: it is not this user's alone, or can't be made; the message has the command that mends it.
    """
    path = runtime_dir()
    if not os.path.lexists(path):
        if not create:
            return None
        try:
            for missing in reversed([each for each in (path, *path.parents) if not os.path.lexists(each)]):
                missing.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"the runtime directory {path} can't be made: {error.strerror}. "
                "Set SPECEDIT_RUNTIME to a directory of yours."
            ) from error
    if trouble := _trouble_with(path):
        raise ConfigError(f"the runtime directory {path} {trouble}, or set SPECEDIT_RUNTIME to another directory.")
    return path


def token_file() -> Path:
    """The file with the token that servers of this user ask for; made at first. Two that make it at once get one.

    Raises:
        ConfigError: the runtime directory is not private, or the file can't be made.
    """
    import secrets

    directory = private_runtime_dir()
    assert directory is not None
    file = directory / "token"
    if not os.path.lexists(file):
        with _written_aside(directory, secrets.token_urlsafe(32).encode() + b"\n") as whole, suppress(FileExistsError):
            # Unlike a rename, a link never replaces the token that another process has made meanwhile.
            file.hardlink_to(whole)
    return file


def read_token(file: Path) -> str:
    """The token in a file that only this user can read.

    Raises:
        ConfigError: it is missing, others can read it, or what it holds is too short or no token.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(
            f"the token file {file} can't be read: {error.strerror}. "
            "Give a regular file of yours, such as one made with: (umask 077; openssl rand -hex 32 > FILE)"
        ) from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise ConfigError(f"the token file {file} is not a regular file of yours. Remove it, or name another one.")
        if status.st_mode & 0o077:
            raise ConfigError(
                f"others may read or write the token file {file}. Run: chmod 600 {shlex.quote(str(file))} "
                "(and put a new token into it, if they may have read it)."
            )
        token = stream.read(4096).strip()
    if len(token) < SHORTEST_TOKEN_CHARS or not all(0x21 <= byte <= 0x7E for byte in token):
        raise ConfigError(
            f"the token file {file} has no token: at least {SHORTEST_TOKEN_CHARS} printable ASCII characters without "
            "blanks are needed. Remove it to have one made, or write one with: openssl rand -hex 32"
        )
    return token.decode("ascii")


def write_privately(file: Path, data: bytes) -> None:
    """Replace a file of the runtime directory as a whole; only this user may read it."""
    with _written_aside(file.parent, data) as whole:
        whole.replace(file)


@contextmanager
def _written_aside(directory: Path, data: bytes) -> Iterator[Path]:
    import secrets

    path = directory / f".{secrets.token_hex(8)}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        yield path
    except OSError as error:
        raise ConfigError(
            f"{directory} can't be written: {error.strerror}. Free some space, or set SPECEDIT_RUNTIME."
        ) from error
    finally:
        path.unlink(missing_ok=True)


def _trouble_with(directory: Path) -> str | None:
    """Why a directory is not this user's alone, with what to do; None if it is."""
    try:
        status = directory.lstat()
    except OSError as error:
        return f"can't be looked at: {error.strerror}. Mend its permissions"
    quoted = shlex.quote(str(directory))
    if stat.S_ISLNK(status.st_mode):
        return f"is a link. Run: rm {quoted}"
    if not stat.S_ISDIR(status.st_mode):
        return f"is no directory. Run: rm {quoted}"
    if status.st_uid != os.getuid():
        return "belongs to another user. Have them remove it"
    if stat.S_IMODE(status.st_mode) != 0o700:
        return f"has the mode {stat.S_IMODE(status.st_mode):04o}, others may use it. Run: chmod 700 {quoted}"
    return None
