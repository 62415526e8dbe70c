"""Models from the Hugging Face hub, by its own library: HF_HOME, HF_TOKEN and HF_HUB_OFFLINE hold."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specedit.errors import (
    FetchError,
    IntegrityError,
    ModelNotFoundError,
    SpecEditError,
    UnsupportedModelError,
)
from specedit.models import store
from specedit.models.progress import Progress, Step
from specedit.models.registry import sha256_of
from specedit.models.sources import HubGguf, HubRepo

_INFO_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub describes it; `sha256` is known for large files only."""

    name: str
    size_bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository's files at one commit, in the hub's own cache, which other programs share."""

    directory: Path
    commit: str


def fetch_repo(source: HubRepo, revision: str | None, progress: Progress) -> Snapshot:
    """Fetch a repository's safetensors and what belongs to them, except what the hub's cache already holds.

    Args:
        source: the repository.
        revision: the commit to take; None takes the newest.
        progress: told of every step.

    Raises:
        ModelNotFoundError: no such repository or revision, or it is closed to this user.
        UnsupportedModelError: it has no safetensors.
        FetchError: the hub can't be reached and its cache lacks the model, or the disk is full.
        IntegrityError: a file isn't what the hub says it is; it was deleted.
    """
    from huggingface_hub import constants, snapshot_download, try_to_load_from_cache

    try:
        commit, listed = _describe(source.repo_id, revision, progress)
    except FetchError as unreachable:
        try:
            cached = snapshot_download(
                source.repo_id, revision=revision, allow_patterns=list(source.files), local_files_only=True
            )
            store.check_weights(Path(cached))
        except (OSError, SpecEditError):
            raise unreachable from None
        return Snapshot(Path(cached), Path(cached).name)
    files = [
        file
        for file in listed
        if "/" not in file.name and any(fnmatch.fnmatch(file.name, pattern) for pattern in source.files)
    ]
    if not any(file.name.endswith(".safetensors") for file in files):
        raise UnsupportedModelError(_without_safetensors(source.repo_id, listed))
    missing = [
        file
        for file in files
        if not isinstance(try_to_load_from_cache(source.repo_id, file.name, revision=commit), str)
    ]
    store.require_space(Path(constants.HF_HUB_CACHE), sum(file.size_bytes for file in missing), "HF_HOME")
    paths = [_fetch_file(source.repo_id, commit, file, progress) for file in files]
    return Snapshot(paths[0].parent, commit)


def fetch_gguf(source: HubGguf, revision: str | None, folder: Path, progress: Progress) -> tuple[Path, str]:
    """Fetch one GGUF file into `folder`, resuming what was cut off, and check its hash.

    Returns:
        The file, and the commit that it comes from.

    Raises:
        As `fetch_repo`.
    """
    commit, listed = _describe(source.repo_id, revision, progress)
    file = next((file for file in listed if file.name == source.filename), None)
    if file is None:
        names = [file.name for file in listed if file.name.endswith(".gguf")]
        raise ModelNotFoundError(
            f"{source.repo_id} has no {source.filename}. It has: {', '.join(names) or 'no GGUF file'}."
        )
    store.require_space(folder, file.size_bytes)
    pinned = HubFile(file.name, file.size_bytes, source.sha256 or file.sha256)
    return _fetch_file(source.repo_id, commit, pinned, progress, folder), commit


def _describe(repo_id: str, revision: str | None, progress: Progress) -> tuple[str, list[HubFile]]:
    from huggingface_hub import HfApi

    progress(Step(f"asking the hub for {repo_id}"))
    with _clear_errors(repo_id):
        info = HfApi().model_info(repo_id, revision=revision, timeout=_INFO_TIMEOUT_SECONDS, files_metadata=True)
    files = [
        HubFile(file.rfilename, file.size or 0, file.lfs.sha256 if file.lfs else None) for file in info.siblings or ()
    ]
    return str(info.sha), files


def _fetch_file(repo_id: str, commit: str, file: HubFile, progress: Progress, folder: Path | None = None) -> Path:
    from huggingface_hub import hf_hub_download

    with _clear_errors(repo_id):
        path = Path(
            hf_hub_download(
                repo_id,
                file.name,
                revision=commit,
                local_dir=folder,
                tqdm_class=_bar_class(f"downloading {repo_id}/{file.name}", file.size_bytes, progress),
            )
        )
    if file.sha256 and sha256_of(path, progress) != file.sha256:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise IntegrityError(
            f"{repo_id}/{file.name} has a wrong SHA-256 ({file.sha256} is right). It was deleted; pull again."
        )
    return path


def _bar_class(label: str, total_bytes: int, progress: Progress) -> type:
    """A class that the hub's library takes for tqdm's; it draws nothing and reports to `progress`."""

    class Bar:
        def __init__(self, *_: Any, initial: int = 0, **__: Any) -> None:
            self.done_bytes = initial
            self.update(0)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, n: float | None = 1) -> None:
            self.done_bytes += int(n or 0)
            progress(Step(label, self.done_bytes, total_bytes))

        def update_transfer(self, n: float | None = 1) -> None: ...

        def set_postfix_str(self, *_: Any, **__: Any) -> None: ...

        def set_transfer_postfix_str(self, *_: Any, **__: Any) -> None: ...

        def close(self) -> None: ...

    return Bar


@contextmanager
def _clear_errors(repo_id: str) -> Iterator[None]:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise ModelNotFoundError(
            f"{repo_id} asks for an agreement first: accept it at https://huggingface.co/{repo_id}, then set HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise ModelNotFoundError(f"{repo_id} no longer has the pinned commit on the hub.") from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelNotFoundError(
            f"the hub has no {repo_id}, or it is private. Check the id; for a private one set HF_TOKEN."
        ) from error
    except OfflineModeIsEnabled as error:
        raise FetchError(f"HF_HUB_OFFLINE is set and the hub's cache lacks {repo_id}. Unset it to download.") from error
    except LocalEntryNotFoundError as error:
        raise FetchError("the hub can't be reached. Check the network or HTTPS_PROXY.") from error
    except HfHubHTTPError as error:
        raise FetchError(f"the hub refused: {_first_line(error)}") from error
    except SpecEditError:
        raise
    except OSError as error:
        raise FetchError(f"the hub's file can't be had: {_first_line(error)}") from error
    except Exception as error:
        # The library's HTTP client differs between its versions, and so do the classes of its network errors.
        raise FetchError(
            f"the hub can't be reached ({_first_line(error)}). Check the network or HTTPS_PROXY."
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _without_safetensors(repo_id: str, listed: list[HubFile]) -> str:
    ggufs = [file.name for file in listed if file.name.endswith(".gguf")]
    if ggufs:
        return f"{repo_id} holds GGUF files only. Name one of them: {repo_id}/{ggufs[0]}"
    return (
        f"{repo_id} has no safetensors at its top. specedit loads safetensors or GGUF only, never pickles: "
        "those can run code. Look for a conversion of the model."
    )
