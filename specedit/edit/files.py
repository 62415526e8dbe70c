"""Files on disk: bytes in, bytes out. A file is read only if the rules allow it, and written whole or not at all.

Written for POSIX systems. Covered: links (the target changes, the link stays), modes, owners, on Linux also extended
attributes and access lists, changes made by others since the file was read, a full disk, exceptions at any point, other
specedit processes, and processes killed on the way (their temporary file goes when the same file is next written). Not
covered: another program that writes in the instant between the last check and the rename.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from specedit.edit.access import ignored_by, secret_rule
from specedit.errors import FileError, RefusedFileError, StaleFileError

MAX_FILE_BYTES = 5_000_000

_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_LONGEST_NAME_BYTES = 255


@dataclass(frozen=True)
class FileSnapshot:
    """A file as it was when it was read.

    Attributes:
        path: as the user typed it.
        target: the file itself, absolute, all links resolved.
        data: its bytes.
        mode: its permission bits.
        sha256: the hash of `data`, in hex.
    """

    path: Path
    target: Path
    data: bytes
    mode: int
    sha256: str


def project_root(path: Path) -> Path:
    """The nearest directory above `path` (or `path` itself) that holds `.git`, else the directory `path` is in.

    The path is taken as typed and made absolute: a link into a project belongs to where the link stands.
    """
    absolute = _absolute(path)
    own = absolute if absolute.is_dir() else absolute.parent
    for directory in (own, *own.parents):
        if os.path.lexists(directory / ".git"):
            return directory
    return own


def read_file(
    path: Path,
    *,
    root: Path | None = None,
    allow_ignored: bool = False,
    secret_patterns: Iterable[str] = (),
    max_file_bytes: int = MAX_FILE_BYTES,
) -> FileSnapshot:
    """Read a file that may be shown to a model.

    Args:
        path: the file, or a link to it.
        root: what lies outside it, links resolved, is refused; `project_root(path)` if not given.
        allow_ignored: read it even if a `.gitignore` of its project, or `.git/info/exclude`, ignores it.
        secret_patterns: further secrets, as `.gitignore` lines relative to the root, upper and lower case alike.
            They may come only from the user, never from the project that is edited.
        max_file_bytes: larger files are refused.

    Raises:
        RefusedFileError: a rule forbids it; the message names the rule and the way out.
        FileError: there is no such file, or it can't be read.
    """
    absolute, target = _absolute(path), _resolve(path)
    root = project_root(path) if root is None else _absolute(root)
    real_root = Path(os.path.realpath(root))
    refuse_secret(path, absolute, root, secret_patterns)
    refuse_secret(path, target, real_root, secret_patterns)
    if not target.is_relative_to(real_root):
        raise RefusedFileError(
            f"{path} leads to {target}, outside {root}. If that is the file you mean, give its own path."
        )
    for name in (absolute, target):
        if not allow_ignored and (source := ignored_by(name, project_root(name))):
            raise RefusedFileError(f"{path} is ignored by {source}. To use it all the same, give --allow-ignored.")
    with _reporting(path, "can't be read"), _opened(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
        status = os.fstat(descriptor)
        if status.st_size > max_file_bytes:
            raise RefusedFileError(
                f"{path} has {status.st_size:,} bytes, more than the {max_file_bytes:,} allowed. "
                "Edit a smaller file, or set max_file_bytes higher in your own settings."
            )
        data = _read_all(descriptor)
    return FileSnapshot(path, target, data, stat.S_IMODE(status.st_mode), _sha256(data))


def refuse_secret(shown: Path, absolute: Path, root: Path, patterns: Iterable[str] = ()) -> None:
    """Refuse a file that is a secret by its name; `shown` is how the user knows it.

    Raises:
        RefusedFileError: it is one, by the rules of `access.secret_rule`.
    """
    if rule := secret_rule(absolute, root, patterns):
        raise RefusedFileError(
            f"{shown} is not read: by its name ({rule}) it is a secret, and those never go to a model. "
            "No option lifts this; if it is none, give it another name."
        )


def check_writable(snapshot: FileSnapshot) -> None:
    """Find out early what would make `write_file` refuse; nothing is touched.

    Refused are: a file or a directory without any write permission bit, even for root, or one that this user may not
    write; and a file with several hard links, since replacing it would part it from its other names.

    Raises:
        RefusedFileError: it would be refused; the message says why and what to do.
        StaleFileError: the file is gone.
    """
    target = snapshot.target
    try:
        status, directory_mode = target.stat(), target.parent.stat().st_mode
    except OSError as error:
        raise _gone(snapshot) from error
    if not status.st_mode & _WRITE_BITS or not os.access(target, os.W_OK):
        raise RefusedFileError(f"{snapshot.path} is read-only. Make it writable first: chmod u+w {target}")
    if not directory_mode & _WRITE_BITS or not os.access(target.parent, os.W_OK | os.X_OK):
        raise RefusedFileError(
            f"{snapshot.path} can't be replaced safely: its directory {target.parent} is read-only. "
            f"Make it writable first: chmod u+w {target.parent}"
        )
    if status.st_nlink > 1:
        raise RefusedFileError(
            f"{snapshot.path} has {status.st_nlink} hard links, and a safe write would part it from the others. "
            "Apply the edit as a patch, or make it a file of its own first: cp it aside and mv it back."
        )


def write_file(snapshot: FileSnapshot, data: bytes) -> None:
    """Replace the file's bytes by `data`, wholly or not at all; equal bytes are not written.

    Mode, owner, group, access list and extended attributes stay as they are; where the system doesn't let one be kept,
    the file is refused. The new bytes are never readable by anyone who could not read the old ones.

    Raises:
        StaleFileError: the file is no longer what the snapshot holds.
        RefusedFileError: see `check_writable`, or its owner, group or attributes can't be kept.
        FileError: the disk is full, or the system failed otherwise. In all three cases nothing was changed.
    """
    if data == snapshot.data:
        return
    check_writable(snapshot)
    target = snapshot.target
    temporary = _temporary_name(target.name)
    with (
        _reporting(snapshot.path, "can't be written"),
        _opened(target.parent, os.O_RDONLY | os.O_DIRECTORY) as directory,
    ):
        _remove_abandoned(target.name, directory)
        try:
            # The name is random, so that removing it at the end can only ever remove what was created here.
            with _opened(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600 & snapshot.mode, directory
            ) as descriptor:
                _write_all(descriptor, data)
                _keep_metadata(snapshot, descriptor)
                os.fsync(descriptor)
            with _locked(directory):
                _refuse_stale(snapshot)
                os.replace(temporary, target.name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
        # The new file stands already; a file system that can't sync directories is no reason to call that a failure.
        with contextlib.suppress(OSError):
            os.fsync(directory)


def _absolute(path: Path) -> Path:
    """Without links resolved: `..` takes away the part before it."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (Path.absolute keeps "..")


def _resolve(path: Path) -> Path:
    """The regular file that `path` leads to."""
    try:
        target = Path(os.path.realpath(path, strict=True))
        mode = target.stat().st_mode
    except FileNotFoundError as error:
        what = "is a link to nothing" if path.is_symlink() else "doesn't exist"
        raise FileError(f"{path} {what}. Check the path.") from error
    except OSError as error:
        raise FileError(f"{path} can't be reached: {error.strerror}. Check the path.") from error
    if stat.S_ISDIR(mode):
        raise RefusedFileError(f"{path} is a directory. Name the files in it.")
    if not stat.S_ISREG(mode):
        raise RefusedFileError(f"{path} is not a regular file: specedit edits neither devices, pipes nor sockets.")
    return target


def _temporary_name(name: str) -> str:
    return f"{_temporary_stem(name)}{os.getpid()}-{secrets.token_hex(8)}.tmp"


def _temporary_stem(name: str) -> str:
    """What the temporary files of `name` start with, cut where the whole name would be too long."""
    shortened = os.fsencode(name)[: _LONGEST_NAME_BYTES - 50].decode("utf-8", "ignore")
    return f".{shortened}.specedit-"


def _remove_abandoned(name: str, directory: int) -> None:
    """Remove what processes that were killed while they wrote `name` have left."""
    pattern = re.compile(re.escape(_temporary_stem(name)) + r"(\d{1,9})-[0-9a-f]{16}\.tmp")
    for entry in os.listdir(directory):
        if (match := pattern.fullmatch(entry)) and not _is_running(int(match[1])):
            with contextlib.suppress(OSError):
                os.unlink(entry, dir_fd=directory)


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _keep_metadata(snapshot: FileSnapshot, descriptor: int) -> None:
    """Give the open file the owner, attributes and mode that the target has now; the mode last, as it is the widest."""
    wanted = snapshot.target.stat()
    own = os.fstat(descriptor)
    if (wanted.st_uid, wanted.st_gid) != (own.st_uid, own.st_gid):
        try:
            os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
        except PermissionError as error:
            raise RefusedFileError(
                f"{snapshot.path} belongs to user {wanted.st_uid} and group {wanted.st_gid}, which can't be kept. "
                "Run specedit as its owner, or apply the edit as a patch."
            ) from error
    _keep_attributes(snapshot, descriptor)
    os.fchmod(descriptor, stat.S_IMODE(wanted.st_mode))


def _keep_attributes(snapshot: FileSnapshot, descriptor: int) -> None:
    """Extended attributes, access lists among them: the target's, and none that the directory gave."""
    if sys.platform != "linux":
        return
    try:
        wanted, own = _attributes(snapshot.target), _attributes(descriptor)
        for name in own.keys() - wanted.keys():
            os.removexattr(descriptor, name)
        for name, value in wanted.items():
            if own.get(name) != value:
                os.setxattr(descriptor, name, value)
    except OSError as error:
        raise RefusedFileError(
            f"{snapshot.path} has extended attributes that can't be kept: {error.strerror}. "
            "Apply the edit as a patch instead."
        ) from error


def _attributes(file: Path | int) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(file, name) for name in os.listxattr(file)}
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return {}
        raise


def _refuse_stale(snapshot: FileSnapshot) -> None:
    try:
        same_target = os.path.realpath(snapshot.path, strict=True) == str(snapshot.target)
        with _opened(snapshot.target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
            same_data = _sha256(_read_all(descriptor)) == snapshot.sha256
    except OSError as error:
        raise _gone(snapshot) from error
    if not (same_target and same_data):
        raise StaleFileError(
            f"{snapshot.path} has changed on disk since it was read, so the edit made for the older text was dropped. "
            "Run it again."
        )


def _gone(snapshot: FileSnapshot) -> StaleFileError:
    return StaleFileError(
        f"{snapshot.path} was removed or moved since it was read, so the edit was dropped. Check the path."
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _write_all(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)


@contextlib.contextmanager
def _opened(path: Path | str, flags: int, mode: int = 0, directory: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(directory: int) -> Iterator[None]:
    """Let no other specedit process check or replace a file in this directory meanwhile, where locks are to be had."""
    with contextlib.suppress(OSError):
        fcntl.flock(directory, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)


@contextlib.contextmanager
def _reporting(path: Path, what: str) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise FileError(
                f"{path} {what}: no space is left on the disk, or a quota or size limit is reached. "
                "Nothing was changed; free some space and run again."
            ) from error
        if error.errno in _FORBIDDEN:
            raise RefusedFileError(
                f"{path} {what}: {error.strerror}. Nothing was changed; "
                "check the permissions of the file and of its directory."
            ) from error
        raise FileError(f"{path} {what}: {error.strerror}. Nothing was changed.") from error
