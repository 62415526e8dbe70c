"""Helix for tests, as a person has it: in a terminal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.editors.documented import blocks
from tests.editors.nvim.home import Home
from tests.editors.nvim.terminal import Terminal
from tests.lsp.scripted_lsp import Script

#: Else Helix itself ends a file with one.
_OURS = "[editor]\ninsert-final-newline = false\n"
#: Beside the file's name, where there is something to save.
_CHANGED = "[+]"
_INSTALLED = Path(__file__).parents[3] / ".venv/editors/helix/hx"


def helix() -> Path | None:
    """The one that the environment names, else what `make test-editors` installs, else the one on the PATH."""
    if named := os.environ.get("SPECEDIT_TEST_HELIX"):
        return Path(named)
    on_path = shutil.which("hx") or shutil.which("helix")
    return _INSTALLED if _INSTALLED.exists() else Path(on_path) if on_path else None


class HelixHome(Home):
    """Where one Helix lives; its configuration is what the page shows."""

    def __init__(self, place: Path, script: Script | None) -> None:
        """Write the configuration."""
        super().__init__(place, "", script)
        directory = place / "config/helix"
        directory.mkdir(parents=True)
        languages, config = blocks("### Helix", "toml")
        (directory / "languages.toml").write_text(languages)
        (directory / "config.toml").write_text(_OURS + config)

    def environment(self) -> dict[str, str]:
        """Variables that keep the editor and the server apart from the user's."""
        return super().environment() | {"HOME": str(self.place)}


class HelixTerminal(Terminal):
    """Helix as a person has it."""

    def _flags(self) -> list[str]:
        return []

    def save(self) -> bytes:
        """What is on the disk after changes were saved."""
        self.until(_CHANGED)
        self.type(":w<CR>")
        # What the prompt offers may hide the one; each key clears the other.
        self.until(lambda: _CHANGED not in self.screen() and "' written, " in self.screen())
        return self.file.read_bytes()
