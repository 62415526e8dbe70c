from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from specedit.errors import IntegrityError
from specedit.train import archives


def everything(path: str, size: int) -> bool:
    return True


def tar(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as out:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            out.addfile(entry)
    return path


def test_zip_and_tar_give_the_same_files(tmp_path: Path) -> None:
    files = {"p/a.py": b"a = 1\n", "p/b/c.py": b"c = 2\n"}
    with zipfile.ZipFile(tmp_path / "p.whl", "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    tar(tmp_path / "p.tgz", files)
    assert dict(archives.members(tmp_path / "p.whl", everything)) == files
    assert dict(archives.members(tmp_path / "p.tgz", everything)) == files


def test_paths_out_of_the_archive_and_links_are_left_out(tmp_path: Path) -> None:
    bad = {"../up.py": b"x", "/abs.py": b"x", "a/../../b.py": b"x", "a\\b.py": b"x", "fine.py": b"x"}
    archive = tar(tmp_path / "bad.tgz", bad, links={"link.py": "/etc/passwd"})
    assert [path for path, _ in archives.members(archive, everything)] == ["fine.py"]


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    archive = tar(tmp_path / "p.tgz", {"small.py": b"x", "large.py": b"x" * 100})
    assert dict(archives.members(archive, lambda path, size: size < 10)) == {"small.py": b"x"}


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"\x1f\x8b\x08\x00 cut off"])
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cut.tgz").write_bytes(content)
    with pytest.raises(IntegrityError, match=r"cut\.tgz is damaged"):
        list(archives.members(tmp_path / "cut.tgz", everything))


def test_an_archive_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 2)
    archive = tar(tmp_path / "many.tgz", {f"{number}.py": b"" for number in range(3)})
    with pytest.raises(IntegrityError, match="more than any source release"):
        list(archives.members(archive, everything))
