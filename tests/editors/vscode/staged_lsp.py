"""The scripted server whose model loads as far as a file says: python -m tests.editors.vscode.staged_lsp SCRIPT STAGE

The file `STAGE` holds `{"step": ..., "percent": ...}`; the model is there once the file isn't.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from specedit.engine.discovery import Progress
from specedit_lsp import server
from specedit_lsp.status import StatusBoard
from tests.lsp.scripted_lsp import Script, ScriptedModel


def load(script: Path, stage: Path, board: StatusBoard) -> ScriptedModel:
    """The model, after all that the file wants told."""
    while stage.exists():
        board.loading(Progress(**json.loads(stage.read_text())))
        time.sleep(0.1)
    board.loaded()
    return ScriptedModel(Script.read(script))


if __name__ == "__main__":
    scripted, staged = map(Path, sys.argv[1:3])

    def make_engine(_settings: Any, _options: Any, board: StatusBoard) -> ScriptedModel:
        return load(scripted, staged, board)

    server.run(make_engine=make_engine)
